from __future__ import annotations

import pytest
from benign import benign
from secret_grid import bare, can_be_read, identities, labelled, rules, templates

from envdoctor.bundling import Redactor


def redacted(text: str) -> str:
    redactor = Redactor()
    redactor.learn(text)
    return redactor.redact(text)


def test_the_grid_is_large():
    assert len(rules()) > 400
    assert len(templates("labelled")) > 200


def test_at_most_half_a_percent_is_left_beside_a_label():
    cells = list(labelled(1000))
    assert len([c for c in cells if can_be_read(c.needle, redacted(c.text))]) <= 5


def test_at_most_three_percent_of_what_has_a_format_is_left_bare():
    cells = list(bare(400))
    assert len([c for c in cells if can_be_read(c.needle, redacted(c.text))]) <= 12


def test_no_line_tells_who_or_where():
    assert [c for c in identities(1) if c.needle in redacted(c.text)] == []


def test_secrets_in_one_text_are_found_as_well():
    cells = list(labelled(150, seed=9))
    shown = redacted("\n\n".join(c.text for c in cells))
    assert len([c for c in cells if can_be_read(c.needle, shown)]) <= 2


@pytest.mark.parametrize(
    "kept",
    [
        "token: ${{ secrets.HF_TOKEN }}",
        "Starting session 4711 of user 1000",
        "Session 12 opened, session id 7",
        "export LD_LIBRARY_PATH=/usr/local/cuda/lib64:/opt/lib",
        "cutlass_80_wmma_tensorop_bf16_s161616gemm_bf16_16x16_128x2_tn_align8",
        "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_execute_segment_k_off",
        "fx graph cache hit for key fqmh5xa3kzrvd2tq6cgbl7wnspuoe4jyi",
        "/root/.triton/cache/YTQ7XN5QK2WZ3MB4C6DEFGHIJKLMNOPQ/_attn_fwd.cubin",
        "_ZN5torch8autograd13AccumulateGradE undefined symbol: _ZNK3c1010TensorImpl4sizeEl",
        "request_id=chatcmpl-9f86d081884c7d659a2feaa0c55ad015",
        "cache_key=3f2a9d44c1e0b7aa2f2a9d44c1e0b7aa",
        "sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU,0",
        "wandb: Run data is saved locally in /opt/x/wandb/run-20251120_101112-a1b2c3d4",
        "keyring==25.6.0 secretstorage==3.3.3 tokenizers==0.21.4",
        "password: <secret-1> and token <huggingface-token-2>",
        "Loading checkpoint shards: 100%|##########| 4/4 [00:11<00:00,  2.81s/it]",
        "torch.cuda.OutOfMemoryError: CUDA out of memory (token 128001)",
        "eos_token_id=[128001, 128008, 128009] pad_token='<|finetune_right_pad_id|>'",
        "/data/models/llama/consolidated.00.pth and /scratch/tmp/x",
        "https://forums.developer.nvidia.com/t/unix-graphics-feature-deprecation-schedule/60588",
        "gcc: error: foo.c: No such file or directory",
        "bash: line 1: nvcc: command not found",
        "python3: can't open file 'x.py'",
        "cuda:0: step-100: loss 0.5",
    ],
)
def test_what_only_looks_like_a_secret_stays(kept):
    assert redacted(kept) == kept


def test_many_more_values_than_before_are_remembered():
    lines = [f"PASSWORD_{i}=zq{i:05d}Xw{i * 7919 % 99991:05d}" for i in range(1200)]
    redactor = Redactor()
    redactor.learn("\n".join(lines))
    bare_values = "\n".join(line.partition("=")[2] for line in lines)
    assert "zq" not in redactor.redact(bare_values)


def test_ten_thousand_benign_lines_stay_in_one_text():
    text = "\n".join(benign(count=10_000))
    assert redacted(text) == text
