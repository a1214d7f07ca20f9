"""Instructions that loops do not become by themselves: prefetch, bits of words, numbers that
threads share, sorting network."""

import functools
from threading import Lock

import numba
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from cart.jit.simd import knows

_IS_PYTHON = getattr(numba.config, "DISABLE_JIT")  # noqa: B009 (numba sets it at run time)


_LOCK = Lock()  # of numbers that threads share, in plain Python


def _instruction(in_python):
    """An intrinsic, for kernels to call; where these are plain Python, a function that does the
    same."""
    return lambda function: in_python if _IS_PYTHON else intrinsic(function)


@_instruction(lambda values, at: None)  # there is no telling where Python looks
def prefetch(typing_context, values, at):
    """Have the line of `values` in which its item number `at` lies brought into the cache."""

    def generate(context, builder, signature, arguments):
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        number, byte = ir.IntType(32), ir.IntType(8).as_pointer()
        place = builder.bitcast(builder.gep(data, [arguments[1]]), byte)
        kind = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        function = builder.module.declare_intrinsic("llvm.prefetch", (byte,), kind)
        builder.call(function, [place, number(0), number(3), number(1)])  # to read, keep, data
        return context.get_dummy_value()

    return types.void(values, at), generate


@_instruction(lambda word: (int(word) & -int(word)).bit_length() - 1)
def lowest_bit(typing_context, word):
    """Place of the lowest bit that a uint64, not 0, has set."""

    def generate(context, builder, signature, arguments):
        return builder.cttz(arguments[0], ir.IntType(1)(1))

    return types.int64(word), generate


@_instruction(lambda word: int(word).bit_length() - 1)
def highest_bit(typing_context, word):
    """Place of the highest bit that a uint64, not 0, has set."""

    def generate(context, builder, signature, arguments):
        return builder.xor(builder.ctlz(arguments[0], ir.IntType(1)(1)), ir.IntType(64)(63))

    return types.int64(word), generate


@_instruction(lambda word: int(word).bit_count())
def count_bits(typing_context, word):
    """How many bits a uint64 has set."""

    def generate(context, builder, signature, arguments):
        return builder.ctpop(arguments[0])

    return types.int64(word), generate


def _change(counter, value_of):
    with _LOCK:
        before = counter[0]
        counter[0] = value_of(before)
    return before


def _atomically(operation, in_python):
    """An instruction on the first item of an int64 array, which gives what it was before."""

    @_instruction(in_python)
    def change(typing_context, counter, value):
        def generate(context, builder, signature, arguments):
            data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
            return builder.atomic_rmw(operation, data, arguments[1], "acq_rel")

        return types.int64(counter, types.int64), generate

    return change


# Make counter[0], int64, which other threads change too, a number; or add a number to it. Both
# return what it was. What a thread has written before, those see that meet the number later.
set_at_once = _atomically("xchg", lambda counter, value: _change(counter, lambda before: value))
add_at_once = _atomically(
    "add", lambda counter, step: _change(counter, lambda before: before + step)
)


@_instruction(lambda counter: counter[0])
def look_at(typing_context, counter):
    """counter[0] as it is now, see `set_at_once`."""

    def generate(context, builder, signature, arguments):
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        return builder.load_atomic(data, "acquire", 8)

    return types.int64(counter), generate


@_instruction(lambda: True)
def can_store_chosen(typing_context):
    """For kernels: does the CPU that they are compiled for know `PlainLanes.store_chosen`, of
    vectors of 64 bytes? Others must not come there."""

    def generate(context, builder, signature, arguments):
        return context.get_constant(types.boolean, knows(context, "avx2"))

    return types.boolean(), generate


def sorting_network(n, widths):
    """Compile stages of Batcher's bitonic sort of n words, which stay in vector registers.

    Parameters
    ----------
    n : int
        A power of two.
    widths : sequence of int
        Runs of that many words, already sorted when they were bitonic, become sorted: ascending
        and descending in turn, the last width ascending.

    Returns
    -------
    callable
        For kernels: `network(keys, first)` sorts keys[first:first + n], an array of uint32.
    """
    stages = []
    for width in widths:
        distance = width // 2
        while distance >= 1:
            stages.append((distance, width))
            distance //= 2
    if _IS_PYTHON:
        return functools.partial(_run_stages, n, stages)
    words = ir.VectorType(ir.IntType(32), n)
    indices = ir.VectorType(ir.IntType(32), n)

    @intrinsic
    def network(typing_context, keys, first):
        def generate(context, builder, signature, arguments):
            data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
            place = builder.bitcast(builder.gep(data, [arguments[1]]), words.as_pointer())
            mine = builder.load(place, align=4)
            for distance, width in stages:
                partners = ir.Constant(indices, [i ^ distance for i in range(n)])
                other = builder.shuffle_vector(mine, mine, partners)
                is_less = builder.icmp_unsigned("<", mine, other)
                low = builder.select(is_less, mine, other)
                high = builder.select(is_less, other, mine)
                chosen = [i if takes_low(i, distance, width) else n + i for i in range(n)]
                mine = builder.shuffle_vector(low, high, ir.Constant(indices, chosen))
            builder.store(mine, place, align=4)
            return context.get_dummy_value()

        return types.void(keys, first), generate

    return network


def takes_low(i, distance, width):
    """Does place i take the lower of the words at i and i ^ distance?"""
    return ((i & distance) == 0) == ((i & width) == 0)


def _run_stages(n, stages, keys, first):
    for distance, width in stages:
        for i in range(n):
            j = i ^ distance
            if i < j:
                low, high = sorted((keys[first + i], keys[first + j]))
                if not takes_low(i, distance, width):
                    low, high = high, low
                keys[first + i], keys[first + j] = low, high
