"""The tape: what autograd allocates, keeps and lets go of."""

from __future__ import annotations

from envdoctor.memory.tape import Tape, rounded


def test_requests_are_rounded_as_the_caching_allocator_does() -> None:
    assert rounded(1) == 512
    assert rounded(513) == 1024
    assert rounded(20 << 20) == 20 << 20
    assert rounded((21 << 20) + 512) == 22 << 20  # the rest of a segment of its own is too small to cut off


def test_a_product_keeps_its_inputs_until_its_backward_pass() -> None:
    tape = Tape()
    a, b = tape.new(1024, 4, needs=True), tape.new(1024, 4, needs=True)
    out = tape.op(1024, 4, (a, b), (a, b))
    tape.drop(a, b)
    assert tape.live == 3 * 4096
    tape.drop(out)
    tape.backward(out)
    assert tape.live == 2 * 4096  # both inputs' gradients, and nothing that was saved


def test_a_sum_hands_its_gradient_on_without_copying_it() -> None:
    tape = Tape()
    a, b = tape.new(1024, 4, needs=True), tape.new(1024, 4, needs=True)
    out = tape.op(1024, 4, (a, b), through=True)
    tape.drop(a, b, out)
    tape.peak = 0
    tape.backward(out)
    assert tape.peak == 0


def test_a_checkpointed_forward_pass_keeps_nothing() -> None:
    tape = Tape(keep=False)
    a = tape.new(1024, 4, needs=True)
    out = tape.op(1024, 4, (a,), (a,))
    tape.drop(a)
    assert tape.live == out.size


def test_weight_gradients_stay_unless_they_are_added_to_older_ones() -> None:
    for accumulating, left in ((False, 8192), (True, 0)):
        tape = Tape(accumulating=accumulating)
        a = tape.new(1024, 4)
        out = tape.op(1024, 4, (a,), (a,), parameter=8192)
        tape.drop(a, out)
        tape.backward(out)
        assert tape.grads == left
        assert tape.peak >= 8192
