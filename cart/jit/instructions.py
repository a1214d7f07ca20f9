"""Instructions that the compiler does not generate from loops: prefetch, bit counts, atomic
counters, sorting networks."""

import functools
from threading import Lock

import numba
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from cart.jit.simd import knows

_IS_PYTHON = getattr(numba.config, "DISABLE_JIT")  # noqa: B009 (numba sets it at run time)


_I32 = ir.IntType(32)
_LOCK = Lock()  # guards atomic counters without the JIT


def _instruction(in_python):
    """Decorate an intrinsic for kernels; without the JIT, replace it by the function given."""
    return lambda function: in_python if _IS_PYTHON else intrinsic(function)


@_instruction(lambda values, at: None)  # Python cannot prefetch
def prefetch(typing_context, values, at):
    """Bring the cache line that holds values[at] into the cache."""

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
    """Position of the lowest bit set in a uint64 other than 0."""

    def generate(context, builder, signature, arguments):
        return builder.cttz(arguments[0], ir.IntType(1)(1))

    return types.int64(word), generate


@_instruction(lambda word: int(word).bit_length() - 1)
def highest_bit(typing_context, word):
    """Position of the highest bit set in a uint64 other than 0."""

    def generate(context, builder, signature, arguments):
        return builder.xor(builder.ctlz(arguments[0], ir.IntType(1)(1)), ir.IntType(64)(63))

    return types.int64(word), generate


@_instruction(lambda word: int(word).bit_count())
def count_bits(typing_context, word):
    """The number of bits set in a uint64."""

    def generate(context, builder, signature, arguments):
        return builder.ctpop(arguments[0])

    return types.int64(word), generate


def _add_where_in_python(sums, first, bits, value):
    for b in range(64):
        if int(bits) >> b & 1:
            sums[first + b] += value


@_instruction(_add_where_in_python)
def add_where(typing_context, sums, first, bits, value):
    """Add a value to sums[first + b] for every bit b of a uint64 that is set. The array has at
    least 64 items from `first` on, and the value its dtype."""

    def generate(context, builder, signature, arguments):
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        kind = context.get_value_type(sums.dtype)
        items = ir.VectorType(kind, 64)
        place = builder.bitcast(builder.gep(data, [arguments[1]]), items.as_pointer())
        one = builder.insert_element(ir.Constant(items, ir.Undefined), arguments[3], _I32(0))
        everywhere = ir.Constant(ir.VectorType(_I32, 64), [0] * 64)
        values = builder.shuffle_vector(one, one, everywhere)
        chosen = builder.bitcast(arguments[2], ir.VectorType(ir.IntType(1), 64))
        mine = builder.load(place, align=1)
        more = (builder.fadd if isinstance(sums.dtype, types.Float) else builder.add)(mine, values)
        builder.store(builder.select(chosen, more, mine), place, align=1)
        return context.get_dummy_value()

    return types.void(sums, first, bits, sums.dtype), generate


def _change(counter, value_of):
    with _LOCK:
        before = counter[0]
        counter[0] = value_of(before)
    return before


def _atomically(operation, in_python):
    """An atomic operation on the first item of an int64 array that returns its old value."""

    @_instruction(in_python)
    def change(typing_context, counter, value):
        def generate(context, builder, signature, arguments):
            data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
            return builder.atomic_rmw(operation, data, arguments[1], "acq_rel")

        return types.int64(counter, types.int64), generate

    return change


# Set counter[0] (int64, shared with other threads) to a number, or add a number to it. Both return
# the old value. Threads that read the new value also see all that this thread wrote before.
set_at_once = _atomically("xchg", lambda counter, value: _change(counter, lambda before: value))
add_at_once = _atomically(
    "add", lambda counter, step: _change(counter, lambda before: before + step)
)


@_instruction(lambda counter: counter[0])
def look_at(typing_context, counter):
    """Read counter[0] atomically, see `set_at_once`."""

    def generate(context, builder, signature, arguments):
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        return builder.load_atomic(data, "acquire", 8)

    return types.int64(counter), generate


@_instruction(lambda: True)
def can_store_chosen(typing_context):
    """Whether the CPU that kernels are compiled for can do `PlainLanes.store_chosen` on vectors of
    64 bytes. On other CPUs kernels must not call it."""

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
        For each width in turn, bitonic runs of that many words are sorted: alternately ascending
        and descending, and ascending where the width is n.

    Returns
    -------
    callable
        For kernels: `network(keys, first)` sorts keys[first:first + n] of a uint32 array.
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

    @intrinsic
    def network(typing_context, keys, first):
        def generate(context, builder, signature, arguments):
            data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
            place = builder.bitcast(builder.gep(data, [arguments[1]]), words.as_pointer())
            mine = builder.load(place, align=4)
            for distance, width in stages:
                partners = ir.Constant(words, [i ^ distance for i in range(n)])
                other = builder.shuffle_vector(mine, mine, partners)
                is_less = builder.icmp_unsigned("<", mine, other)
                low = builder.select(is_less, mine, other)
                high = builder.select(is_less, other, mine)
                chosen = [i if takes_low(i, distance, width) else n + i for i in range(n)]
                mine = builder.shuffle_vector(low, high, ir.Constant(words, chosen))
            builder.store(mine, place, align=4)
            return context.get_dummy_value()

        return types.void(keys, first), generate

    return network


def takes_low(i, distance, width):
    """Whether position i takes the lower of the words at i and i ^ distance."""
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
