# Builds tfm. One file, nothing recursive: sources are found by their folders, objects land in $(BUILD).
# `make help` lists what it can do.

DEPS      = build-essential pkg-config libopenblas0 libsentencepiece-dev zlib1g-dev libjansson-dev
DEPS_TEST = valgrind clang mandoc

PREFIX   ?= /usr/local
CFLAGS   ?= -O2 -g
CXXFLAGS ?= -O2 -g
OBJCOPY  ?= objcopy

comma := ,
ifdef SAN
BUILD := build/san-$(subst $(comma),-,$(SAN))
SAN_FLAGS := -fsanitize=$(SAN) -fno-sanitize-recover=undefined -fno-omit-frame-pointer
else
BUILD := build
endif

VERSION := $(shell sed -n 's/^\#define TFM_VERSION "\(.*\)"/\1/p' lib/tfm.h)
SONAME  := libtfm.so.$(firstword $(subst ., ,$(VERSION)))
MACHINE := $(shell uname -m)

# ---- libraries, each with the Debian package that brings it ----

PKG_sentencepiece = libsentencepiece-dev
PKG_zlib          = zlib1g-dev
PKG_jansson       = libjansson-dev
PKGS = sentencepiece zlib jansson

PKG_CONFIG ?= pkg-config
# Asked when first needed, not when this file is read: `make deps demo` must be able to install them first.
PKG_CFLAGS = $(eval PKG_CFLAGS := $$(shell $(PKG_CONFIG) --cflags $(PKGS)))$(PKG_CFLAGS)
PKG_LIBS   = $(eval PKG_LIBS := $$(shell $(PKG_CONFIG) --libs $(PKGS)))$(PKG_LIBS)

# ---- flags ----

WARNINGS = -Wall -Wextra -Wshadow -Wvla
COMMON   = -ffp-contract=off -fno-math-errno -fvisibility=hidden -fPIC -pthread -Ilib $(PKG_CFLAGS) \
           $(SAN_FLAGS)
C_FLAGS   = -std=c11 -D_GNU_SOURCE $(WARNINGS) -Wstrict-prototypes $(COMMON) $(CPPFLAGS) $(CFLAGS)
CXX_FLAGS = -std=c++17 $(WARNINGS) $(COMMON) $(CPPFLAGS) $(CXXFLAGS)
LINK      = $(CXX) -pthread $(SAN_FLAGS) $(LDFLAGS)
LIBS      = $(PKG_LIBS) -lm -ldl

# ---- sources ----

# The kernel tiers that need more than the base instructions are built where their processor is.
TIERS := lib/num/kern_avx2.c lib/num/kern_vnni.c lib/num/kern_amx.c
LIB_C := $(wildcard lib/*.c lib/*/*.c)
ifeq ($(filter x86_64 amd64,$(MACHINE)),)
LIB_C := $(filter-out $(TIERS),$(LIB_C))
endif
LIB_O := $(LIB_C:%.c=$(BUILD)/%.o) $(patsubst %.cc,$(BUILD)/%.o,$(wildcard lib/text/spm.cc))
CMD_O := $(patsubst %.c,$(BUILD)/%.o,$(wildcard cmd/*.c))

# The same layers with REAL as double, for gradient checks and golden values.
DOUBLE_C := $(filter-out $(TIERS),$(wildcard lib/base/*.c lib/num/*.c lib/nn/*.c lib/model/*.c))
DOUBLE_O := $(DOUBLE_C:%.c=$(BUILD)/double/%.o) $(filter $(BUILD)/lib/text/%,$(LIB_O))

TESTS        := $(patsubst %.c,$(BUILD)/%,$(wildcard tests/unit/*_test.c))
TESTS        := $(TESTS:$(BUILD)/tests/unit/%=$(BUILD)/tests/%)
BENCHES      := $(patsubst %.c,$(BUILD)/%,$(wildcard tests/bench/*.c))
DOUBLE_TESTS := $(filter %_double_test,$(TESTS))
FLOAT_TESTS  := $(filter-out $(DOUBLE_TESTS),$(TESTS))

PROGRAM := $(if $(CMD_O),$(BUILD)/tfm)
PRODUCTS := $(PROGRAM) $(BUILD)/libtfm.a $(BUILD)/libtfm.so

# ---- targets ----

.PHONY: all tests demo check check-long bench bench-train bench-translate bench-kernels bench-lengths ablation install deps deps-test format clean help FORCE
.DELETE_ON_ERROR:

all: $(PRODUCTS) ## build the program and the libraries (the default)

tests: all $(TESTS) ## build the unit tests too

demo: all ## translate a few sentences with the model that comes with tfm
	@TFM_BUILD=$(abspath $(BUILD)) sh data/demo.sh

check: tests ## run the tests (some minutes)
	@TFM_BUILD=$(abspath $(BUILD)) sh tests/run.sh

check-long: tests ## run the tests under sanitizers and valgrind too
	@TFM_BUILD=$(abspath $(BUILD)) MAKE="$(MAKE)" CC="$(CC)" CXX="$(CXX)" sh tests/long.sh

bench-train: all ## measure the speed of training against PyTorch and Marian
	@TFM_BUILD=$(abspath $(BUILD)) sh tests/bench/train.sh

bench-translate: all $(BENCHES) ## measure translation against CTranslate2 and Bergamot
	@TFM_BUILD=$(abspath $(BUILD)) sh tests/bench/engines.sh

ablation: all ## train each member of the model family on a small corpus, for hours, and compare them
	@TFM_BUILD=$(abspath $(BUILD)) sh tests/bench/ablation.sh

bench-lengths: all ## compare kinds of positions beyond the lengths of their training, for hours
	@TFM_BUILD=$(abspath $(BUILD)) sh tests/bench/lengths.sh

bench-kernels: $(BUILD)/tests/bench/kernels ## measure the products of each tier against the most it can do
	@$<

bench: all $(BENCHES) ## measure speed
	@for b in $(filter-out %/multi30k.sh %/ablation.sh %/lengths.sh %/distil.sh,$(wildcard tests/bench/*.sh)); do TFM_BUILD=$(abspath $(BUILD)) sh "$$b" || exit 1; done

install: all $(BUILD)/install/libtfm.a $(BUILD)/tfm.pc ## install under PREFIX (/usr/local) inside DESTDIR
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/include $(DESTDIR)$(PREFIX)/lib/pkgconfig \
	    $(DESTDIR)$(PREFIX)/share/tfm/models
	install -m 755 $(PROGRAM) $(DESTDIR)$(PREFIX)/bin/
	install -m 644 lib/tfm.h $(DESTDIR)$(PREFIX)/include/
	install -m 644 $(BUILD)/install/libtfm.a $(DESTDIR)$(PREFIX)/lib/
	install -m 755 $(BUILD)/libtfm.so $(DESTDIR)$(PREFIX)/lib/libtfm.so.$(VERSION)
	ln -sf libtfm.so.$(VERSION) $(DESTDIR)$(PREFIX)/lib/$(SONAME)
	ln -sf $(SONAME) $(DESTDIR)$(PREFIX)/lib/libtfm.so
	install -m 644 $(BUILD)/tfm.pc $(DESTDIR)$(PREFIX)/lib/pkgconfig/
	for page in $(wildcard man/*.[1-8]); do \
	    install -D -m 644 $$page $(DESTDIR)$(PREFIX)/share/man/man$${page##*.}/$${page##*/} || exit 1; done
	cp -R models/. $(DESTDIR)$(PREFIX)/share/tfm/models/

deps: ## install the Debian packages that tfm is built from
	$(call apt_install,$(DEPS))

deps-test: deps ## install the Debian packages that only the tests need, too
	$(call apt_install,$(DEPS_TEST))

format: ## lay out the sources with clang-format
	clang-format -i $(wildcard lib/*.[ch] lib/*/*.[ch] lib/*/*.cc cmd/*.[ch] tests/*.h tests/*/*.[ch])

clean: ## remove what was built
	rm -rf $(BUILD)

help: ## show this list
	@echo "make [BUILD=folder] [CC=clang CXX=clang++] [SAN=address,undefined | SAN=thread] TARGET"
	@sed -n 's/^\([a-z-]*\):.* ## \(.*\)/  \1\t\2/p' Makefile | expand -t 14

define apt_install
@if [ "$$(id -u)" = 0 ]; then as=; \
elif command -v sudo >/dev/null; then as=sudo; \
else echo "this needs root: run as root: apt-get install $(1)" >&2; exit 1; fi; \
set -x; $$as apt-get update && $$as apt-get install -y --no-install-recommends $(1)
endef

# ---- rules ----

# make V=1 shows every command
Q = $(if $(V),,@)

# Under sanitizers, unrolled kernels would take minutes to compile, and the reference tier even at -O1.
KERN_O    = $(if $(SAN),-O1,-O3)
KERN_REF  = $(if $(SAN),-O0,-O3)
KERN_AVX2 = $(KERN_O) -mavx2 -mfma -mf16c
KERN_VNNI = $(KERN_O) -mavx512f -mavx512bw -mavx512vl -mavx512dq -mavx512vnni -mfma -mf16c \
            -mprefer-vector-width=512
KERN_AMX  = $(KERN_VNNI) -mamx-tile -mamx-int8 -mamx-bf16
%/lib/num/int8.o: KERN = $(KERN_O)
%/lib/num/kern_ref.o: KERN = $(KERN_REF)
%/lib/num/kern_avx2.o: KERN = $(KERN_AVX2)
%/lib/num/kern_vnni.o: KERN = $(KERN_VNNI)
%/lib/num/kern_amx.o: KERN = $(KERN_AMX)

# Rewritten only when the compilers or their flags change, and then everything is built anew.
FLAGS = $(CC) $(C_FLAGS) $(CXX) $(CXX_FLAGS) $(KERN_REF) $(KERN_AVX2) $(KERN_AMX)
$(BUILD)/flags: FORCE $(filter deps deps-test,$(MAKECMDGOALS))
	@command -v $(PKG_CONFIG) >/dev/null || \
	    { echo "pkg-config is missing: install the Debian package pkg-config, or run: make deps" >&2; exit 1; }
	@$(foreach p,$(PKGS),$(PKG_CONFIG) --exists $p || \
	    { echo "the library $p is missing: install Debian's $(PKG_$p), or run: make deps" >&2; exit 1; };) :
	@mkdir -p $(BUILD)
	@echo '$(FLAGS)' | cmp -s - $@ || echo '$(FLAGS)' > $@

$(BUILD)/double/%.o: %.c $(BUILD)/flags
	@mkdir -p $(@D)
	@echo "  CC $<"
	$(Q)$(CC) $(C_FLAGS) $(KERN) -DREAL_IS_DOUBLE -MMD -MP -c -o $@ $<

$(BUILD)/tests/unit/%_double_test.o: tests/unit/%_double_test.c $(BUILD)/flags
	@mkdir -p $(@D)
	@echo "  CC $<"
	$(Q)$(CC) $(C_FLAGS) -DREAL_IS_DOUBLE -Itests -MMD -MP -c -o $@ $<

$(BUILD)/tests/%.o: tests/%.c $(BUILD)/flags
	@mkdir -p $(@D)
	@echo "  CC $<"
	$(Q)$(CC) $(C_FLAGS) -Itests -MMD -MP -c -o $@ $<

$(BUILD)/%.o: %.c $(BUILD)/flags
	@mkdir -p $(@D)
	@echo "  CC $<"
	$(Q)$(CC) $(C_FLAGS) $(KERN) -MMD -MP -c -o $@ $<

# Where the installed program finds the model that comes with it.
$(BUILD)/cmd/find_model.o: private CPPFLAGS += -DTFM_DATADIR='"$(PREFIX)/share/tfm"'

$(BUILD)/%.o: %.cc $(BUILD)/flags
	@mkdir -p $(@D)
	@echo "  CXX $<"
	$(Q)$(CXX) $(CXX_FLAGS) -MMD -MP -c -o $@ $<

$(BUILD)/libtfm.a: $(LIB_O)
	@rm -f $@
	$(Q)$(AR) rcs $@ $^

$(BUILD)/libtfm-double.a: $(DOUBLE_O)
	@rm -f $@
	$(Q)$(AR) rcs $@ $^

# For programs outside: one object in which only the names of the API are left, so that none of ours clashes
# with theirs.
$(BUILD)/install/libtfm.a: $(LIB_O)
	@mkdir -p $(@D)
	@rm -f $@
	$(LD) -r --force-group-allocation -o $(@D)/tfm.o $^
	$(OBJCOPY) --localize-hidden $(@D)/tfm.o
	$(Q)$(AR) rcs $@ $(@D)/tfm.o

# The version script also hides the templates of the C++ library, which -fvisibility=hidden leaves visible.
$(BUILD)/libtfm.so: $(LIB_O)
	@echo '{ global: tfm_*; local: *; };' > $(BUILD)/libtfm.map
	@echo "  LINK $@"
	$(Q)$(LINK) -shared -Wl,-soname,$(SONAME) -Wl,--version-script,$(BUILD)/libtfm.map \
	    $(if $(SAN),,-Wl,-z,defs) -o $@ $^ $(LIBS)
	@ln -sf libtfm.so $(BUILD)/$(SONAME)

$(BUILD)/tfm: $(CMD_O) $(BUILD)/libtfm.a
	@echo "  LINK $@"
	$(Q)$(LINK) -o $@ $^ $(LIBS)

$(FLOAT_TESTS): $(BUILD)/tests/%: $(BUILD)/tests/unit/%.o $(BUILD)/libtfm.a
	@echo "  LINK $@"
	$(Q)$(LINK) -o $@ $^ $(LIBS)

# Of the commands, what unit tests reach.
$(BUILD)/tests/event_file_test: $(BUILD)/cmd/event_file.o

$(DOUBLE_TESTS): $(BUILD)/tests/%: $(BUILD)/tests/unit/%.o $(BUILD)/libtfm-double.a
	@echo "  LINK $@"
	$(Q)$(LINK) -o $@ $^ $(LIBS)

$(BENCHES): $(BUILD)/tests/bench/%: $(BUILD)/tests/bench/%.o $(BUILD)/libtfm.a
	@echo "  LINK $@"
	$(Q)$(LINK) -o $@ $^ $(LIBS)

$(BUILD)/tfm.pc: lib/tfm.h FORCE
	@mkdir -p $(BUILD)
	@printf '%s\n' 'prefix=$(PREFIX)' 'libdir=$${prefix}/lib' 'includedir=$${prefix}/include' '' \
	    'Name: tfm' 'Description: Trains, runs and explains Transformer translation models' \
	    'Version: $(VERSION)' 'Requires.private: $(PKGS)' 'Libs: -L$${libdir} -ltfm' \
	    'Libs.private: -lstdc++ -lm -pthread' 'Cflags: -I$${includedir}' > $@

.SECONDARY:
-include $(LIB_O:.o=.d) $(CMD_O:.o=.d) $(DOUBLE_O:.o=.d) $(TESTS:$(BUILD)/tests/%=$(BUILD)/tests/unit/%.d) $(BENCHES:=.d)
