#!/usr/bin/python3
"""Makes the golden values that hold the model to PyTorch: tests/golden/*.txt, read by tests/golden/golden.h.

The model is written here a second time, plainly from the formulas and in float64: one attention head
after the other, a padded batch with masks where the C code has none, gradients by autograd. Weights come
from a formula that both sides compute (golden_value), so no weights are stored. Recurrent cells are PyTorch's own. Needs PyTorch (Debian:
python3-torch); running the tests does not.

    /usr/bin/python3 tests/golden/make_golden.py
"""

import math
import os

import torch
import torch.nn.functional

torch.set_default_dtype(torch.float64)
torch.set_num_threads(1)

LAYERS, D, H, F = 2, 8, 2, 12
BUCKETS, MAX_DISTANCE = 32, 128
EPSILON, SMOOTHING, EOS = 1e-5, 0.1, 0

# name, pre-norm, tying, SSRU in the decoder, source and target vocabulary, start symbol, all gradients or their sums,
# and what is unlike the plain Transformer
CONFIGS = [
    ("post_all", False, "all", False, 13, 13, 0, True),
    ("pre_target", True, "target", False, 11, 13, 2, False),
    ("post_none", False, "none", False, 11, 13, 0, False),
    ("post_ssru", False, "all", True, 13, 13, 0, True),
    ("pre_ssru", True, "target", True, 11, 13, 2, False),
    ("post_rms_swiglu", False, "all", False, 13, 13, 0, True, {"norm": "rms", "activation": "swiglu"}),
    ("pre_rms_geglu", True, "target", False, 11, 13, 2, False, {"norm": "rms", "activation": "geglu"}),
    ("pre_rms_swish", True, "none", True, 11, 13, 0, False, {"norm": "rms", "activation": "swish"}),
    ("post_gelu", False, "all", False, 13, 13, 0, False, {"activation": "gelu"}),
    ("pre_gelu_tanh", True, "all", False, 13, 13, 0, False, {"activation": "gelu-tanh"}),
    ("interleaved", False, "all", False, 13, 13, 0, False, {"positions": "interleaved"}),
    ("learned", True, "all", False, 13, 13, 0, True, {"positions": "learned", "max_positions": 5}),
    ("rope", False, "all", False, 13, 13, 0, False, {"positions": "rope"}),
    ("alibi", True, "all", False, 13, 13, 0, False, {"positions": "alibi"}),
    ("relative", False, "all", False, 13, 13, 0, True, {"positions": "relative"}),
    ("nowhere", True, "all", False, 13, 13, 0, False, {"positions": "none"}),
    ("multi_query", False, "all", False, 13, 13, 0, True, {"kv_heads": 1}),
    ("window", True, "all", False, 13, 13, 0, False, {"window": 2, "positions": "relative"}),
    ("unscaled", False, "all", False, 13, 13, 0, False, {"scaled": False, "positions": "rope", "kv_heads": 1}),
    ("additive", True, "all", False, 13, 13, 0, True, {"additive": True}),
    ("additive_shared", False, "all", False, 13, 13, 0, False,
     {"additive": True, "kv_heads": 1, "window": 1, "positions": "alibi"}),
    ("alone", False, "all", False, 13, 13, 0, True, {"alone": True}),
    ("alone_learned", True, "none", False, 11, 13, 2, False, {"alone": True, "positions": "learned", "max_positions": 5}),
    ("alone_rope", True, "target", False, 11, 13, 0, False,
     {"alone": True, "positions": "rope", "kv_heads": 1, "norm": "rms", "activation": "swiglu"}),
    ("language", True, "all", False, 13, 13, 0, True, {"alone": True, "source": [[EOS]] * 3}),
    ("masked", False, "all", False, 13, 13, 0, True, {"masked": True, "activation": "gelu"}),
    ("masked_learned", True, "none", False, 13, 13, 0, False,
     {"masked": True, "positions": "learned", "max_positions": 5}),
    ("masked_relative", True, "all", False, 13, 13, 0, False, {"masked": True, "positions": "relative", "window": 2}),
]

# name, cell, attention, tying, source and target vocabulary, start symbol, all gradients or their sums
RNN_CONFIGS = [
    ("rnn_gru", "GRU", "additive", "all", 13, 13, 0, True),
    ("rnn_lstm", "LSTM", "dot", "target", 11, 13, 2, False),
    ("rnn_general", "GRU", "general", "none", 11, 13, 0, False),
]

ACTIVATIONS = {
    "relu": torch.nn.functional.relu,
    "gelu": torch.nn.functional.gelu,
    "gelu-tanh": lambda x: torch.nn.functional.gelu(x, approximate="tanh"),
    "swish": torch.nn.functional.silu,
    "swiglu": torch.nn.functional.silu,
    "geglu": torch.nn.functional.gelu,
}
GATED = ("swiglu", "geglu")

SOURCE = [[3, 7, 5, 10, EOS], [9, EOS], [4, 4, 8, 2, 6, 1, EOS]]
TARGET = [[12, 3, 5, EOS], [7, 11, 2, 9, 10, EOS], [6, EOS]]
LABELS = [{1: 2, 3: 10}, {0: 9}, {1: 11, 2: 3, 5: 1}]  # by place: what a masked language model is to predict


def list_embeddings(tie, n_source, n_target, decodes=True):
    params = []
    if tie == "all":
        params.append(("model.shared.weight", (n_target, D)))
    else:
        params.append(("model.encoder.embed_tokens.weight", (n_source, D)))
        if decodes:
            params.append(("model.decoder.embed_tokens.weight", (n_target, D)))
    if tie == "none":
        params.append(("lm_head.weight", (n_target, D)))
    params.append(("final_logits_bias", (n_target,)))
    return params


def list_params(pre_norm, tie, ssru, n_source, n_target, variant):
    """Names and shapes, in the order of lib/model/params.def."""
    alone, masked = variant.get("alone"), variant.get("masked")  # a decoder without encoder, and the other way round
    params = list_embeddings(tie, n_source, n_target, not masked)
    sides = ("decoder",) if alone else ("encoder",) if masked else ("encoder", "decoder")
    for side in sides:
        if variant.get("positions") == "learned":
            params.append((f"model.{side}.embed_positions.weight", (variant["max_positions"], D)))
        if variant.get("positions") == "relative":
            params.append((f"model.{side}.relative_attention_bias.weight", (BUCKETS, H)))
    if pre_norm:
        for side in sides:
            params.append((f"model.{side}.layer_norm.weight", (D,)))
            params.append((f"model.{side}.layer_norm.bias", (D,)))
    for side in sides:
        for layer in range(LAYERS):
            for attention in ("self_attn", "encoder_attn")[: 1 if side == "encoder" or alone else 2]:
                if ssru and side == "decoder" and attention == "self_attn":
                    params.append((f"model.decoder.layers.{layer}.ssru.forget.weight", (D, D)))
                    params.append((f"model.decoder.layers.{layer}.ssru.forget.bias", (D,)))
                    params.append((f"model.decoder.layers.{layer}.ssru.input.weight", (D, D)))
                    params.append((f"model.decoder.layers.{layer}.ssru_layer_norm.weight", (D,)))
                    params.append((f"model.decoder.layers.{layer}.ssru_layer_norm.bias", (D,)))
                    continue
                for matrix in ("q_proj", "k_proj", "v_proj", "out_proj"):
                    rows = D // H * variant.get("kv_heads", H) if matrix in ("k_proj", "v_proj") else D
                    params.append((f"model.{side}.layers.{layer}.{attention}.{matrix}.weight", (rows, D)))
                    params.append((f"model.{side}.layers.{layer}.{attention}.{matrix}.bias", (rows,)))
                if variant.get("additive"):
                    params.append((f"model.{side}.layers.{layer}.{attention}.score_proj.weight", (H, D // H)))
                params.append((f"model.{side}.layers.{layer}.{attention}_layer_norm.weight", (D,)))
                params.append((f"model.{side}.layers.{layer}.{attention}_layer_norm.bias", (D,)))
            for matrix in ("fc1", "fc3")[: 2 if variant.get("activation") in GATED else 1]:
                params.append((f"model.{side}.layers.{layer}.{matrix}.weight", (F, D)))
                params.append((f"model.{side}.layers.{layer}.{matrix}.bias", (F,)))
            params.append((f"model.{side}.layers.{layer}.fc2.weight", (D, F)))
            params.append((f"model.{side}.layers.{layer}.fc2.bias", (D,)))
            params.append((f"model.{side}.layers.{layer}.final_layer_norm.weight", (D,)))
            params.append((f"model.{side}.layers.{layer}.final_layer_norm.bias", (D,)))
    if variant.get("norm") == "rms":
        params = [p for p in params if not p[0].endswith("norm.bias")]
    return params


def golden_value(name, i):
    """Element i of a tensor: a wave of growing frequency, with a phase from the bytes of the name."""
    wave = math.sin(0.7 * i * i + sum((j + 1) * byte for j, byte in enumerate(name.encode())))
    if name.endswith("norm.weight"):
        return 1 + 0.3 * wave
    return wave * (0.3 if name.endswith("bias") else 0.6)


def make_weights(params):
    weights = {}
    for name, shape in params:
        values = [golden_value(name, i) for i in range(math.prod(shape))]
        weights[name] = torch.tensor(values).reshape(shape).requires_grad_()
    return weights


def pad(sentences):
    """[B, longest] ids, and which of them are real."""
    longest = max(len(s) for s in sentences)
    ids = torch.tensor([s + [EOS] * (longest - len(s)) for s in sentences])
    real = torch.tensor([[i < len(s) for i in range(longest)] for s in sentences])
    return ids, real


def positions(n, source_lengths, w, side, variant):
    """What is added to the embeddings of [B, n] tokens: [B or 1, n, D]."""
    kind = variant.get("positions", "halves")
    half = D // 2
    if kind == "halves":
        angle = torch.tensor([[pos / 10000 ** (i / (half - 1)) for i in range(half)] for pos in range(n)])
        return torch.cat([torch.sin(angle), torch.cos(angle)], dim=1)[None]
    if kind == "interleaved":
        angle = torch.tensor([[pos / 10000 ** (2 * i / D) for i in range(half)] for pos in range(n)])
        return torch.stack([torch.sin(angle), torch.cos(angle)], dim=2).reshape(1, n, D)
    if kind == "learned":
        return torch.stack([learned(n, length, w[f"model.{side}.embed_positions.weight"]) for length in source_lengths])
    return torch.zeros(1, n, D)


def learned(n, source_length, table):
    """Rows of a table; a source longer than the table squeezes the positions of both sides into it."""
    last = len(table) - 1
    ratio = last / (source_length - 1) if source_length > len(table) else 1
    rows = []
    for pos in range(n):
        spot = min(pos * ratio, last)
        low = int(spot)
        high = min(low + 1, last)
        rows.append(table[low] * (1 - (spot - low)) + table[high] * (spot - low))
    return torch.stack(rows)


def turn(x):
    """RoPE of one head, [B, n, K]: columns i and i + K/2 are a complex number, turned by its position."""
    half = x.shape[2] // 2
    angle = torch.tensor([[pos / 10000 ** (i / half) for i in range(half)] for pos in range(x.shape[1])])
    turned = torch.complex(x[:, :, :half], x[:, :, half:]) * torch.polar(torch.ones_like(angle), angle)
    return torch.cat([turned.real, turned.imag], dim=2)


def bucket(distance, causal):
    """That of the T5 (Raffel et al. 2020), with powers of whole numbers in place of logarithms."""
    n = BUCKETS if causal else BUCKETS // 2
    far = max(-distance, 0) if causal else abs(distance)
    single = n // 2
    if far >= single:
        k = 0
        while far ** (n - single) * single ** (k + 1) >= MAX_DISTANCE ** (k + 1) * single ** (n - single):
            k += 1
        far = min(single + k, n - 1)
    return far + (n if not causal and distance > 0 else 0)


def bias(h, n_queries, n_keys, w, side, variant):
    """What is added to the scores of head h in self-attention, [queries, keys]."""
    kind = variant.get("positions")
    if kind == "alibi":
        slope = 2 ** (-8 * (h + 1) / H)
        return torch.tensor([[-slope * abs(j - i) for j in range(n_keys)] for i in range(n_queries)])
    if kind == "relative":
        table = w[f"model.{side}.relative_attention_bias.weight"]
        return torch.stack([torch.stack([table[bucket(j - i, side == "decoder"), h] for j in range(n_keys)])
                            for i in range(n_queries)])
    return torch.zeros(n_queries, n_keys)


def norm(x, w, name):
    """Without a bias the RMS norm."""
    if name + ".bias" not in w:
        return x / torch.sqrt((x ** 2).mean(-1, keepdim=True) + EPSILON) * w[name + ".weight"]
    mean = x.mean(-1, keepdim=True)
    variance = ((x - mean) ** 2).mean(-1, keepdim=True)
    return (x - mean) / torch.sqrt(variance + EPSILON) * w[name + ".weight"] + w[name + ".bias"]


def linear(x, w, name):
    return x @ w[name + ".weight"].T + w[name + ".bias"]


def attention(x, memory, mask, w, name, variant):
    """mask [B, 1 or queries, keys] is True where a query may look."""
    is_self = name.endswith("self_attn")
    q, k, v = (linear(y, w, f"{name}.{m}_proj") for y, m in ((x, "q"), (memory, "k"), (memory, "v")))
    if is_self and "window" in variant:
        place = torch.arange(x.shape[1])
        distance = (place[:, None] - place[None, :]).abs()
        mask = (mask & (distance <= variant["window"])) | (distance == 0)  # padding must see something, too
    heads = []
    for h in range(H):
        part = slice(h * D // H, (h + 1) * D // H)
        kv = h * variant.get("kv_heads", H) // H
        kv_part = slice(kv * D // H, (kv + 1) * D // H)
        q_h, k_h = q[:, :, part], k[:, :, kv_part]
        if is_self and variant.get("positions") == "rope":
            q_h, k_h = turn(q_h), turn(k_h)
        if variant.get("additive"):
            scores = torch.tanh(q_h[:, :, None] + k_h[:, None]) @ w[f"{name}.score_proj.weight"][h]
        else:
            scores = q_h @ k_h.transpose(1, 2) / (math.sqrt(D // H) if variant.get("scaled", True) else 1)
        if is_self:
            scores = scores + bias(h, x.shape[1], x.shape[1], w, name.split(".")[1], variant)
        heads.append(torch.softmax(scores.masked_fill(~mask, -math.inf), dim=-1) @ v[:, :, kv_part])
    return linear(torch.cat(heads, dim=-1), w, f"{name}.out_proj")


def ssru(x, w, name):
    """The simpler simple recurrent unit (Kim et al. 2019), step by step; padding is behind all that counts."""
    state = torch.zeros(x.shape[0], D)
    states = []
    for t in range(x.shape[1]):
        forget = torch.sigmoid(linear(x[:, t], w, f"{name}.forget"))
        state = forget * state + (1 - forget) * (x[:, t] @ w[f"{name}.input.weight"].T)
        states.append(torch.clamp(state, min=0))
    return torch.stack(states, dim=1)


def feed_forward(x, w, name, activation):
    hidden = ACTIVATIONS[activation](linear(x, w, f"{name}.fc1"))
    if activation in GATED:
        hidden = hidden * linear(x, w, f"{name}.fc3")
    return linear(hidden, w, f"{name}.fc2")


def block(x, self_mask, memory, cross_mask, w, name, pre_norm, variant, has_ssru=False):
    def sublayer(y, f, norm_name):
        return y + f(norm(y, w, norm_name)) if pre_norm else norm(y + f(y), w, norm_name)

    if has_ssru:
        x = sublayer(x, lambda y: ssru(y, w, f"{name}.ssru"), f"{name}.ssru_layer_norm")
    else:
        x = sublayer(x, lambda y: attention(y, y, self_mask, w, f"{name}.self_attn", variant),
                     f"{name}.self_attn_layer_norm")
    if memory is not None:
        x = sublayer(x, lambda y: attention(y, memory, cross_mask, w, f"{name}.encoder_attn", variant),
                     f"{name}.encoder_attn_layer_norm")
    return sublayer(x, lambda y: feed_forward(y, w, name, variant.get("activation", "relu")), f"{name}.final_layer_norm")


def list_rnn_params(cell, attention, tie, n_source, n_target):
    """The same for recurrent layers."""
    params = list_embeddings(tie, n_source, n_target)
    gates = 4 if cell == "LSTM" else 3
    if attention != "dot":
        params.append(("model.decoder.attention.q_proj.weight", (D, D)))
    if attention == "additive":
        params.append(("model.decoder.attention.k_proj.weight", (D, D)))
        params.append(("model.decoder.attention.k_proj.bias", (D,)))
        params.append(("model.decoder.attention.score.weight", (1, D)))
    params.append(("model.decoder.context.weight", (gates * D, D)))
    params.append(("model.decoder.readout.state.weight", (D, D)))
    params.append(("model.decoder.readout.state.bias", (D,)))
    params.append(("model.decoder.readout.context.weight", (D, D)))
    for side, ways, width in (("encoder", ("rnn", "rnn.reverse"), D // 2), ("decoder", ("rnn",), D)):
        for layer in range(LAYERS):
            for way in ways:
                name = f"model.{side}.layers.{layer}.{way}"
                params.append((f"{name}.input.weight", (gates * width, D)))
                params.append((f"{name}.input.bias", (gates * width,)))
                params.append((f"{name}.hidden.weight", (gates * width, width)))
                params.append((f"{name}.hidden.bias", (gates * width,)))
    return params


def cell_weights(w, name):
    """In PyTorch's order."""
    return [w[f"{name}.{part}"] for part in ("input.weight", "hidden.weight", "input.bias", "hidden.bias")]


def run_cell(cell, x, weights):
    """x [T, D] through what nn.GRU and nn.LSTM call; with weights of two ways, through both."""
    both = len(weights) > 4
    zero = torch.zeros(2, 1, D // 2) if both else torch.zeros(1, 1, D)
    if cell == "LSTM":
        return torch.lstm(x[None], (zero, zero), weights, True, 1, 0.0, True, both, True)[0][0]
    return torch.gru(x[None], zero, weights, True, 1, 0.0, True, both, True)[0][0]


def rnn_attention(kind, state, memory, w):
    """state [D], memory [S, D]: the context."""
    if kind == "additive":
        energy = torch.tanh(w["model.decoder.attention.q_proj.weight"] @ state
                            + linear(memory, w, "model.decoder.attention.k_proj"))
        scores = energy @ w["model.decoder.attention.score.weight"][0]
    elif kind == "general":
        scores = memory @ (w["model.decoder.attention.q_proj.weight"] @ state)
    else:
        scores = memory @ state
    return torch.softmax(scores, dim=0) @ memory


def rnn_decode(cell, kind, y, memory, w):
    """One sentence: y [T, D] embeddings; top [T, D] and contexts [T, D]."""
    weights = cell_weights(w, "model.decoder.layers.0.rnn")
    weights[0] = torch.cat([weights[0], w["model.decoder.context.weight"]], dim=1)
    state, cell_state, states, contexts = torch.zeros(1, D), torch.zeros(1, D), [], []
    for t in range(y.shape[0]):
        contexts.append(rnn_attention(kind, state[0], memory, w))
        x = torch.cat([y[t], contexts[-1]])[None]
        if cell == "LSTM":
            state, cell_state = torch.lstm_cell(x, (state, cell_state), *weights)
        else:
            state = torch.gru_cell(x, state, *weights)
        states.append(state[0])
    top = torch.stack(states)
    for layer in range(1, LAYERS):
        top = top + run_cell(cell, top, cell_weights(w, f"model.decoder.layers.{layer}.rnn"))
    return top, torch.stack(contexts)


def run_rnn(cell, kind, tie, start, w):
    """Sentence by sentence, without padding."""
    source_table, target_table, unembed = tables(tie, w)
    memories, hiddens, nlls, loss = [], [], [], 0
    for source, target in zip(SOURCE, TARGET):
        memory = source_table[source] * math.sqrt(D)
        for layer in range(LAYERS):
            name = f"model.encoder.layers.{layer}.rnn"
            y = run_cell(cell, memory, cell_weights(w, name) + cell_weights(w, name + ".reverse"))
            memory = y + memory if layer > 0 else y
        y = target_table[[start] + target[:-1]] * math.sqrt(D)
        top, contexts = rnn_decode(cell, kind, y, memory, w)
        hidden = torch.tanh(linear(top, w, "model.decoder.readout.state")
                            + contexts @ w["model.decoder.readout.context.weight"].T)
        log_p = torch.log_softmax(hidden @ unembed.T + w["final_logits_bias"], dim=-1)
        nll = -log_p.gather(-1, torch.tensor(target)[:, None])[:, 0]
        loss = loss + ((1 - SMOOTHING) * nll - SMOOTHING * log_p.mean(-1)).sum()
        memories.append(memory)
        hiddens.append(hidden)
        nlls.append(nll)
    return torch.cat(memories), torch.cat(hiddens), torch.cat(nlls), loss


def tables(tie, w):
    """Embeddings of source and target, and the output layer."""
    source_table = w["model.shared.weight" if tie == "all" else "model.encoder.embed_tokens.weight"]
    target_table = w["model.shared.weight" if tie == "all" else "model.decoder.embed_tokens.weight"]
    return source_table, target_table, w["lm_head.weight"] if tie == "none" else target_table


def encode(source_table, pre_norm, w, variant):
    """[B, longest, D], and which rows are real."""
    source, source_real = pad(SOURCE)
    lengths = [len(s) for s in SOURCE]
    memory = source_table[source] * math.sqrt(D) + positions(source.shape[1], lengths, w, "encoder", variant)
    for layer in range(LAYERS):
        memory = block(memory, source_real[:, None, :], None, None, w, f"model.encoder.layers.{layer}", pre_norm,
                       variant)
    if pre_norm:
        memory = norm(memory, w, "model.encoder.layer_norm")
    return memory, source_real


def run_masked(pre_norm, tie, w, variant):
    """An encoder alone, which predicts some pieces of its own text."""
    table = w["model.shared.weight" if tie == "all" else "model.encoder.embed_tokens.weight"]
    unembed = w["lm_head.weight"] if tie == "none" else table
    memory, source_real = encode(table, pre_norm, w, variant)
    hidden = torch.stack([memory[i, place] for i, labels in enumerate(LABELS) for place in labels])
    labels = torch.tensor([label for labels in LABELS for label in labels.values()])
    log_p = torch.log_softmax(hidden @ unembed.T + w["final_logits_bias"], dim=-1)
    row_nll = torch.nn.functional.nll_loss(log_p, labels, reduction="none")
    loss = ((1 - SMOOTHING) * row_nll - SMOOTHING * log_p.mean(-1)).sum()
    return memory[source_real], hidden, row_nll, loss


def run(pre_norm, tie, has_ssru, start, w, variant):
    source_table, target_table, unembed = tables(tie, w)
    lengths = [len(s) for s in SOURCE]
    memory, source_real = encode(source_table, pre_norm, w, variant)
    source_mask = source_real[:, None, :]
    target, target_real = pad(TARGET)
    inputs, _ = pad([[start] + t[:-1] for t in TARGET])
    causal = torch.ones(target.shape[1], target.shape[1]).tril() > 0
    hidden = target_table[inputs] * math.sqrt(D) + positions(target.shape[1], lengths, w, "decoder", variant)
    for layer in range(LAYERS):
        hidden = block(hidden, target_real[:, None, :] & causal, memory, source_mask, w,
                       f"model.decoder.layers.{layer}", pre_norm, variant, has_ssru)
    if pre_norm:
        hidden = norm(hidden, w, "model.decoder.layer_norm")

    log_p = torch.log_softmax(hidden @ unembed.T + w["final_logits_bias"], dim=-1)
    row_nll = -log_p.gather(-1, target[:, :, None])[:, :, 0][target_real]
    loss = ((1 - SMOOTHING) * row_nll - SMOOTHING * log_p.mean(-1)[target_real]).sum()
    return memory[source_real], hidden[target_real], row_nll, loss


def run_alone(pre_norm, tie, start, w, variant):
    """A decoder alone: source, start symbol in place of the source's </s>, and target are one sequence. The source of a
    language model is a </s>."""
    sources = variant.get("source", SOURCE)
    source_table, target_table, unembed = tables(tie, w)
    rows = [torch.cat([source_table[s[:-1]], target_table[[start] + t[:-1]]]) for s, t in zip(sources, TARGET)]
    x = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True) * math.sqrt(D)
    x = x + positions(x.shape[1], [len(s) for s in sources], w, "decoder", variant)
    real = torch.tensor([[i < len(r) for i in range(x.shape[1])] for r in rows])
    mask = real[:, None, :] & (torch.ones(x.shape[1], x.shape[1]).tril() > 0)
    for layer in range(LAYERS):
        x = block(x, mask, None, None, w, f"model.decoder.layers.{layer}", pre_norm, variant)
    if pre_norm:
        x = norm(x, w, "model.decoder.layer_norm")
    hidden = torch.cat([x[i, len(s) - 1 : len(s) - 1 + len(t)] for i, (s, t) in enumerate(zip(sources, TARGET))])
    log_p = torch.log_softmax(hidden @ unembed.T + w["final_logits_bias"], dim=-1)
    row_nll = -log_p.gather(-1, torch.tensor(sum(TARGET, []))[:, None])[:, 0]
    loss = ((1 - SMOOTHING) * row_nll - SMOOTHING * log_p.mean(-1)).sum()
    return torch.cat([source_table[s] for s in sources]) * math.sqrt(D), hidden, row_nll, loss


def write(out, name, values):
    values = values.detach().reshape(-1).tolist()
    out.write(f"{name} {len(values)}\n")
    for i in range(0, len(values), 4):
        out.write(" ".join(f"{v:.17g}" for v in values[i : i + 4]) + "\n")


def sums(gradient):
    """What stands for a whole gradient: its sum, that of its magnitudes, and one that knows the order."""
    g = gradient.reshape(-1)
    order = torch.tensor([math.sin(i + 1) for i in range(len(g))])
    return torch.stack([g.sum(), g.abs().sum(), (g * order).sum()])


def write_model(name, params, model, full):
    """model(weights) gives memory, hidden states, -log p of the tokens, loss."""
    weights = make_weights(params)
    memory, hidden, row_nll, loss = model(weights)
    loss.backward()
    folder = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(folder, name + ".txt"), "w", encoding="ascii") as out:
        write(out, "encoder", memory)
        write(out, "decoder", hidden)
        write(out, "row_nll", row_nll)
        write(out, "loss", loss)
        for param, _ in params:
            gradient = weights[param].grad
            write(out, param, gradient if full else sums(gradient))


def main():
    for name, pre_norm, tie, has_ssru, n_source, n_target, start, full, *variants in CONFIGS:
        variant = variants[0] if variants else {}
        params = list_params(pre_norm, tie, has_ssru, n_source, n_target, variant)
        if variant.get("alone"):
            write_model(name, params, lambda w: run_alone(pre_norm, tie, start, w, variant), full)
        elif variant.get("masked"):
            write_model(name, params, lambda w: run_masked(pre_norm, tie, w, variant), full)
        else:
            write_model(name, params, lambda w: run(pre_norm, tie, has_ssru, start, w, variant), full)
    for name, cell, kind, tie, n_source, n_target, start, full in RNN_CONFIGS:
        params = list_rnn_params(cell, kind, tie, n_source, n_target)
        write_model(name, params, lambda w: run_rnn(cell, kind, tie, start, w), full)


main()
