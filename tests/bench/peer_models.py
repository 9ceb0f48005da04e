"""Models for measuring tfm beside other engines, which both must have.

    python peer_models.py firefox MODELDIR OUT      a student of Firefox's translations as a folder that tfm opens
    python peer_models.py base VOCAB.SPM OUT        a model of base size with random weights, for tfm
    python peer_models.py ctranslate2 FOLDER OUT    a Transformer of tfm's as a model of CTranslate2

firefox: MODELDIR holds model.*.bin, vocab.*.spm and lex.*.bin. Marian's binary container of int8 matrices is read,
each matrix multiplied out to fp32, and written as an uncompressed safetensors file under tfm's names (tfm-model(5));
OUT/shortlist.gz has the lists of lex.*.bin. Marian's decoder starts with no piece at all: here a piece "<start>" with
a row of zeros is added to the vocabulary. For measuring only: tfm itself does not read such files.

ctranslate2: FOLDER holds its weights plain and in fp32 (tfm convert --precision fp32 --plain); post-norm, sinusoidal
positions, ReLU.
"""
import glob
import gzip
import json
import os
import struct
import sys

import numpy as np

F32, INT8 = 0x0404, (0x4101, 0x10001)
MASK = (1 << 64) - 1


def read_items(path):
    """{name: array}; ordinary int8 matrices come back as [out, in]."""
    data = open(path, "rb").read()
    version, n = struct.unpack_from("<QQ", data)
    assert version == 1, version
    heads = [struct.unpack_from("<4Q", data, 16 + 32 * i) for i in range(n)]
    at, names, shapes = 16 + 32 * n, [], []
    for length, *_ in heads:
        names.append(data[at:at + length - 1].decode())
        at += length
    for _, _, dims, _ in heads:
        shapes.append(struct.unpack_from("<%di" % dims, data, at))
        at += 4 * dims
    at += 8 + struct.unpack_from("<Q", data, at)[0]
    items = {}
    for name, shape, (_, kind, _, size) in zip(names, shapes, heads):
        count = int(np.prod(shape))
        if kind == F32:
            items[name] = np.frombuffer(data, "<f4", count, at).reshape(shape)
        elif kind in INT8:
            shape = shape if "Wemb" in name else shape[::-1]
            scale = struct.unpack_from("<f", data, at + count)[0]
            items[name] = np.frombuffer(data, np.int8, count, at).reshape(shape).astype(np.float32) / np.float32(scale)
        at += size
    return items


def count_layers(names, pattern, first):
    n = 0
    while pattern % (n + first) in names:
        n += 1
    return n


def rename(items):
    """{tfm's name: array}, with the added piece."""
    out = {"model.shared.weight": np.vstack([items["Wemb"], np.zeros_like(items["Wemb"][:1])]),
           "final_logits_bias": np.append(items["decoder_ff_logit_out_b"].ravel(), np.float32(-1e4))}

    def attention(to, old):
        for letter, name in zip("qkvo", ("q_proj", "k_proj", "v_proj", "out_proj")):
            out["%s.%s.weight" % (to, name)] = items["%s_W%s" % (old, letter)]
            out["%s.%s.bias" % (to, name)] = items["%s_b%s" % (old, letter)].ravel()

    def norm(to, old):
        out[to + ".weight"], out[to + ".bias"] = items[old + "_ln_scale"].ravel(), items[old + "_ln_bias"].ravel()

    for side in ("encoder", "decoder"):
        for layer in range(count_layers(items, side + "_l%d_ffn_W1", 1)):
            old, to = "%s_l%d_" % (side, layer + 1), "model.%s.layers.%d." % (side, layer)
            if side == "encoder":
                attention(to + "self_attn", old + "self")
                norm(to + "self_attn_layer_norm", old + "self_Wo")
            else:
                out[to + "ssru.input.weight"] = items[old + "rnn_W"]
                out[to + "ssru.forget.weight"] = items[old + "rnn_Wf"]
                out[to + "ssru.forget.bias"] = items[old + "rnn_bf"].ravel()
                norm(to + "ssru_layer_norm", old + "rnn_ffn")
                attention(to + "encoder_attn", old + "context")
                norm(to + "encoder_attn_layer_norm", old + "context_Wo")
            for i in "12":
                out[to + "fc%s.weight" % i] = items[old + "ffn_W" + i]
                out[to + "fc%s.bias" % i] = items[old + "ffn_b" + i].ravel()
            norm(to + "final_layer_norm", old + "ffn_ffn")
    return out


def write_safetensors(path, tensors):
    header, at = {}, 0
    for name, array in tensors.items():
        header[name] = {"dtype": "F32", "shape": list(array.shape), "data_offsets": [at, at + array.nbytes]}
        at += array.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        for array in tensors.values():
            f.write(np.ascontiguousarray(array, "<f4").tobytes())


def add_piece(spm, text):
    """Behind the last piece of a SentencePiece model, a control piece: ModelProto.pieces is field 1; piece, score and
    type are fields 1, 2 and 3 of an element."""
    text = text.encode()
    piece = b"\x0a" + bytes([len(text)]) + text + b"\x15" + struct.pack("<f", 0) + b"\x18\x03"
    return spm + b"\x0a" + bytes([len(piece)]) + piece


def mix(x):
    x = (x + 0x9e3779b97f4a7c15) & MASK
    x = ((x ^ x >> 30) * 0xbf58476d1ce4e5b9) & MASK
    x = ((x ^ x >> 27) * 0x94d049bb133111eb) & MASK
    return x ^ x >> 31


def fingerprint(pieces):
    h = 0
    for _ in range(2):  # source and target
        for piece in pieces:
            for byte in piece.encode():
                h = mix(h ^ byte)
            h = mix(h ^ 256)
    return h


def number(n):
    out = bytearray()
    while n >= 128:
        out.append(n % 128 + 128)
        n >>= 7
    out.append(n)
    return bytes(out)


def write_shortlist(path, lex, pieces):
    """One vocabulary for both sides: a source piece may also come as itself."""
    _, _, first, _, n_offsets, n_ids = struct.unpack_from("<6Q", lex)
    offsets = np.frombuffer(lex, "<u8", n_offsets, 48)
    ids = np.frombuffer(lex, "<u4", n_ids, 48 + 8 * n_offsets)
    out = bytearray(b"TFM-LIST" + struct.pack("<IIIQ", 1, len(pieces), len(pieces), fingerprint(pieces)))
    lists = [range(first)]
    lists += [sorted({w, *ids[offsets[w]:offsets[w + 1]].tolist()}) for w in range(n_offsets - 1)]
    lists += [[]] * (len(pieces) - n_offsets + 1)
    for one in lists:
        before = -1
        out += number(len(one))
        for i in one:
            out += number(i - before)
            before = i
    with gzip.open(path, "wb") as f:
        f.write(bytes(out))


def firefox(folder, out):
    import sentencepiece
    only = lambda pattern: glob.glob(os.path.join(folder, pattern))[0]
    tensors = rename(read_items(only("model.*.bin")))
    spm = add_piece(open(only("vocab.*.spm"), "rb").read(), "<start>")
    vocabulary = sentencepiece.SentencePieceProcessor(model_proto=spm)
    n = vocabulary.get_piece_size()
    layers = [count_layers(tensors, "model.%s.layers.%%d.fc1.weight" % side, 0) for side in ("encoder", "decoder")]
    write_folder(out, tensors, spm, layers, heads=8, start=n - 1, epsilon=1e-6, decoder_cell="ssru")
    write_shortlist(os.path.join(out, "shortlist.gz"), open(only("lex.*.bin"), "rb").read(),
                    [vocabulary.id_to_piece(i) for i in range(n)])


def write_folder(out, tensors, spm, layers, heads, start, epsilon, **more):
    os.makedirs(out, exist_ok=True)
    n, d = tensors["model.shared.weight"].shape
    inner = tensors["model.encoder.layers.0.fc1.weight"].shape[0]
    config = {"format_version": 1, "architecture": "encoder-decoder", "d_model": d,
              "encoder_layers": layers[0], "decoder_layers": layers[1], "encoder_attention_heads": heads,
              "decoder_attention_heads": heads, "encoder_ffn_dim": inner, "decoder_ffn_dim": inner,
              "activation_function": "relu", "normalize_before": False, "layer_norm_eps": epsilon, "scale_embedding": True,
              "positions": "sinusoidal", "source_vocab_size": n, "vocab_size": n, "tie_embeddings": "all", "eos_token_id": 0,
              "unk_token_id": 1, "decoder_start_token_id": start, "dropout": 0.0, "attention_dropout": 0.0,
              "activation_dropout": 0.0, **more}
    json.dump(config, open(os.path.join(out, "config.json"), "w"), indent=1)
    write_safetensors(os.path.join(out, "weights.safetensors"), tensors)
    open(os.path.join(out, "vocab.spm"), "wb").write(spm)


def base(spm, out, d=512, inner=2048, heads=8, layers=6):
    """Xavier's normal distribution, no biases, seed 1. The vocabulary has </s> 0 and <unk> 1."""
    import sentencepiece
    rng = np.random.default_rng(1)
    n = sentencepiece.SentencePieceProcessor(model_file=spm).get_piece_size()
    tensors = {"model.shared.weight": (rng.standard_normal((n, d)) / np.sqrt(d)).astype(np.float32),
               "final_logits_bias": np.zeros(n, np.float32)}

    def linear(name, rows, columns):
        tensors[name + ".weight"] = (rng.standard_normal((rows, columns)) * np.sqrt(2 / (rows + columns))).astype(np.float32)
        tensors[name + ".bias"] = np.zeros(rows, np.float32)

    def norm(name):
        tensors[name + ".weight"], tensors[name + ".bias"] = np.ones(d, np.float32), np.zeros(d, np.float32)

    for side, blocks in (("encoder", ("self_attn",)), ("decoder", ("self_attn", "encoder_attn"))):
        for layer in range(layers):
            to = "model.%s.layers.%d." % (side, layer)
            for block in blocks:
                for name in ("q_proj", "k_proj", "v_proj", "out_proj"):
                    linear(to + block + "." + name, d, d)
                norm(to + block + "_layer_norm")
            linear(to + "fc1", inner, d)
            linear(to + "fc2", d, inner)
            norm(to + "final_layer_norm")
    write_folder(out, tensors, open(spm, "rb").read(), (layers, layers), heads, start=0, epsilon=1e-5)


def read_safetensors(path):
    data = open(path, "rb").read()
    size = struct.unpack_from("<Q", data)[0]
    header = json.loads(data[8:8 + size])
    return {name: np.frombuffer(data, "<f4", int(np.prod(t["shape"])), 8 + size + t["data_offsets"][0]).reshape(t["shape"])
            for name, t in header.items() if name != "__metadata__"}


def positions(length, d):
    angle = np.arange(length)[:, None] * np.exp(-np.arange(d // 2) * np.log(10000.0) / (d // 2 - 1))
    return np.concatenate([np.sin(angle), np.cos(angle)], 1).astype(np.float32)


def ctranslate2(folder, out):
    import sentencepiece
    from ctranslate2.specs import common_spec, transformer_spec
    config = json.load(open(os.path.join(folder, "config.json")))
    tensors = read_safetensors(os.path.join(folder, "weights.safetensors"))
    assert not config["normalize_before"] and config["tie_embeddings"] == "all"
    d = config["d_model"]
    spec = transformer_spec.TransformerSpec.from_config(
        (config["encoder_layers"], config["decoder_layers"]), config["encoder_attention_heads"], pre_norm=False,
        activation=common_spec.Activation.RELU)

    def linear(layer, *names):
        layer.weight = np.concatenate([tensors[name + ".weight"] for name in names])
        layer.bias = np.concatenate([tensors[name + ".bias"].ravel() for name in names])

    def norm(layer, name):
        layer.gamma, layer.beta = tensors[name + ".weight"].ravel(), tensors[name + ".bias"].ravel()

    def names(block, letters):
        return [block + "." + {"q": "q_proj", "k": "k_proj", "v": "v_proj", "o": "out_proj"}[x] for x in letters]

    for side, stack in (("encoder", spec.encoder), ("decoder", spec.decoder)):
        for i, layer in enumerate(stack.layer):
            to = "model.%s.layers.%d." % (side, i)
            linear(layer.self_attention.linear[0], *names(to + "self_attn", "qkv"))
            linear(layer.self_attention.linear[1], *names(to + "self_attn", "o"))
            norm(layer.self_attention.layer_norm, to + "self_attn_layer_norm")
            if side == "decoder":
                for part, letters in zip(layer.attention.linear, ("q", "kv", "o")):
                    linear(part, *names(to + "encoder_attn", letters))
                norm(layer.attention.layer_norm, to + "encoder_attn_layer_norm")
            linear(layer.ffn.linear_0, to + "fc1")
            linear(layer.ffn.linear_1, to + "fc2")
            norm(layer.ffn.layer_norm, to + "final_layer_norm")
        embeddings = stack.embeddings[0] if isinstance(stack.embeddings, list) else stack.embeddings
        embeddings.weight = tensors["model.shared.weight"]
        stack.scale_embeddings = True
        stack.position_encodings.encodings = positions(1024, d)
    spec.decoder.projection.weight = tensors["model.shared.weight"]
    spec.decoder.projection.bias = tensors["final_logits_bias"].ravel()
    vocabulary = sentencepiece.SentencePieceProcessor(model_file=os.path.join(folder, "vocab.spm"))
    pieces = [vocabulary.id_to_piece(i) for i in range(vocabulary.get_piece_size())]
    spec.register_source_vocabulary(pieces)
    spec.register_target_vocabulary(pieces)
    spec.config.bos_token = spec.config.eos_token = spec.config.decoder_start_token = pieces[config["eos_token_id"]]
    spec.config.unk_token = pieces[config["unk_token_id"]]
    spec.config.add_source_eos = True
    spec.config.layer_norm_epsilon = config["layer_norm_eps"]
    spec.validate()
    spec.optimize()
    os.makedirs(out, exist_ok=True)
    spec.save(out)
    open(os.path.join(out, "vocab.spm"), "wb").write(open(os.path.join(folder, "vocab.spm"), "rb").read())


{"firefox": firefox, "base": base, "ctranslate2": ctranslate2}[sys.argv[1]](*sys.argv[2:])
