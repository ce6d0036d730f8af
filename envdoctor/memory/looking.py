"""A tower's passes, played into the allocator before the decoder's forward and after its backward pass."""

from __future__ import annotations

from collections.abc import Iterable

from envdoctor.memory.caching import Block, CachingAllocator
from envdoctor.memory.images import Tower, entry_blocks, shared_blocks
from envdoctor.memory.programs import ending_program, layer_program, watched_layer
from envdoctor.memory.turns import Frame, Turns, frame_of, paired
from envdoctor.values import NamedTuple


class Seen(NamedTuple):
    """What lies in the allocator once the tower has looked: `features` go when the decoder is through."""

    tower: Tower
    features: list[Block]
    lasting: list[Block]
    frames: list[Frame]
    ending: Frame | None
    whole: bool = False


def look(
    heap: CachingAllocator, tower: Tower, checkpoint: bool, accumulating: bool, whole: bool = False
) -> Seen:
    """Play the tower's forward pass; every block of it where it is to be played `whole`."""
    v, s = tower.vision, tower.settings
    (narrow,) = heap.take(tower.pixels * s.vector)
    lasting = heap.take(*shared_blocks(tower)) if v.rope or v.masked else []
    size = s.tokens * v.hidden * s.stream
    passing = heap.take(*entry_blocks(tower))
    (stream,) = heap.take(size)
    _give(heap, passing)
    if tower.asked:
        lasting += heap.take(size)
    if not tower.graph:
        features = _watch(heap, tower, stream)
        _give(heap, (narrow, *lasting))
        return Seen(tower, features, [], [], None)
    turns, frames, last = Turns(heap, whole=whole), [], stream
    program = layer_program(v, s, checkpoint, False, False, accumulating)
    for place in range(v.layers):
        frame = frame_of(program, last)
        turns.play(program.forward, frame.blocks, place == v.layers - 1)
        last = frame.blocks[program.output]
        frames.append(frame)
    ending = frame_of(ending_program(v, s, tower.tokens, accumulating, True), last)
    heap.play(ending.program.forward, ending.blocks)
    if s.trains:
        lasting.append(narrow)
    else:
        heap.give(narrow)
    return Seen(tower, [ending.blocks[ending.program.output]], lasting, frames, ending, whole)


def _watch(heap: CachingAllocator, tower: Tower, stream: Block) -> list[Block]:
    """The blocks and what follows them with no graph; returns the features."""
    v, s = tower.vision, tower.settings
    turns, last = Turns(heap), stream
    program = watched_layer(v, s, False, False)
    for place in range(v.layers):
        blocks = [last] * program.slots
        turns.play(program.events, blocks, place == v.layers - 1)
        last = blocks[program.output]
    ending = frame_of(ending_program(v, s, tower.tokens, False, False), last)
    heap.play(ending.program.forward, ending.blocks)
    return [ending.blocks[ending.program.output]]


def look_back(heap: CachingAllocator, seen: Seen) -> list[Block]:
    """Play the tower's backward pass; returns the trained weights' gradients."""
    kept: list[Block] = []
    if seen.ending is not None:
        tower = seen.tower
        (gradient,) = heap.take(tower.tokens * tower.vision.outputs * tower.settings.compute)
        turns = Turns(heap, whole=seen.whole)
        for frame, following in paired([seen.ending, *seen.frames[::-1]]):
            program = frame.program
            frame.blocks[program.arriving] = gradient
            last = following is None or program is not following.program
            turns.play(program.backward, frame.blocks, last)
            kept += [frame.blocks[slot] for slot in program.gradients]
            gradient = frame.blocks[program.leaving]
        heap.give(gradient)
    _give(heap, seen.lasting)
    return kept


def _give(heap: CachingAllocator, blocks: Iterable[Block]) -> None:
    for block in blocks:
        heap.give(block)
