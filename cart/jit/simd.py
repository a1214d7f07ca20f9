"""Compile functions to vector (SIMD) instructions, written once for all lanes."""

import functools

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from cart.jit.levels import NEEDS

_PERMUTED = 8  # items of 32 bits that a CPU with AVX2 can permute at once
_ORDERS = [
    sorted(range(_PERMUTED), key=lambda lane: not bits >> lane & 1)
    for bits in range(1 << _PERMUTED)
]


def knows(context, feature):
    """Whether the CPU that kernels are compiled for has a set of instructions, such as "avx2"."""
    _, cpu, features = context.codegen().magic_tuple()
    return feature in NEEDS.get(cpu, ()) or f"+{feature}" in features.split(",")


class PlainLanes:
    """The operations of functions decorated with `on_lanes`, in plain NumPy.

    Values are vectors of `n` items, or numbers, and have the operators of arrays. "Flat" means that
    the shape of an array does not matter.
    """

    def __init__(self, n):
        self.n = n

    def load(self, array, row=0):
        """Load items row * n, ..., row * n + n - 1 of a flat array."""
        return array.ravel()[row * self.n : (row + 1) * self.n].copy()

    def store(self, array, values, row=0):
        """Store values where `load` reads them."""
        array.reshape(-1)[row * self.n : (row + 1) * self.n] = values

    def load_at(self, array, first):
        """Load the n items from position `first` on of a flat array."""
        return array.reshape(-1)[first : first + self.n].copy()

    def store_at(self, array, values, first):
        """Store values where `load_at` reads them; integers may be narrower than the array's."""
        array[first : first + self.n] = values

    def store_chosen(self, array, values, condition, first):
        """Store the values for which the condition holds, contiguously from position `first` on.

        The rest of the n items there is overwritten with unspecified values. Only some CPUs can do
        this, see `cart.jit.instructions.can_store_chosen`.
        """
        chosen = values[condition]
        array[first : first + len(chosen)] = chosen

    def count(self, condition):
        """The number of lanes in which the condition holds."""
        return int(np.count_nonzero(condition))

    def is_at_most(self, values, others):
        """Compare unsigned integers: values <= others."""
        return values <= others

    def item(self, array, i):
        """Item i, as a number that can be the `row` of `load`."""
        return array[i]

    def same(self, array, i):
        """Item i of a flat array, in all lanes."""
        return array.reshape(-1)[i]

    def number(self, value):
        """An integer argument of the function as a number, for counting and positions."""
        return value

    def repeat(self, n, step, *carried):
        """Do `carried = step(k, *carried)` for k = 0, ..., n - 1; return the last tuple.

        n is a number, at least 1.
        """
        for k in range(n):
            carried = step(k, *carried)
        return carried

    def repeat_until(self, begin, end, step, *carried):
        """Do `is_last, here, following = step(k, *carried)` for k from `begin` on, and carry
        `following` to the next step. Stop when `is_last`, a result of `any`, is true, or at `end`.

        Returns
        -------
        k, *carried
            The k whose step was the last and its `here`; or `end` and the last `following`.
        """
        for k in range(begin, end):
            is_last, here, carried = step(k, *carried)
            if is_last:
                return k, *here
        return end, *carried

    def everywhere(self, number):
        """A vector with a number in all lanes."""
        return number

    def choose(self, is_so, one, other):
        """Call `one()` if a number is not 0, else `other()`, and return its result, a tuple."""
        return one() if is_so else other()

    def gather_each(self, array, places):
        """Load the items, of any dtype, at these positions of a flat array, one by one.

        Positions are unsigned integers.
        """
        return array.ravel()[places]

    def gather_rows(self, array, places, width):
        """A list of the items at places + j of a flat array, for j = 0, ..., width - 1.

        `width` is a power of two. Items that are side by side are loaded together, which takes a
        third of the time of as many gathers.
        """
        return [array.ravel()[places + j] for j in range(width)]

    def real(self, values):
        """Convert integers to float32."""
        return values.astype(np.float32)

    def with_bits(self, values):
        """The float32 numbers that have these bits."""
        return values.view(np.float32)

    def bits(self, values):
        """The bits of float32 numbers, as int32."""
        return values.view(np.int32)

    def single(self, values):
        """Convert numbers to float32; those that are too large become infinite."""
        with np.errstate(over="ignore"):
            return values.astype(np.float32)

    def double(self, values):
        return values.astype(np.float64)

    def where(self, condition, values, others):
        """Choose lane by lane between values and others, one of which may be a number."""
        return np.where(condition, values, others)

    def any(self, condition):
        return bool(np.any(condition))


class _CompiledLanes(PlainLanes):
    """The operations of `PlainLanes` as LLVM's vector instructions."""

    def __init__(self, n, context, builder):
        super().__init__(n)
        self.builder = builder
        self._context = context

    def argument(self, kind, value):
        """Convert an argument of the function: an array to the pointer to its data, a number to a
        vector, a NamedTuple item by item."""
        if isinstance(kind, types.BaseNamedTuple):
            values = cgutils.unpack_tuple(self.builder, value)
            return kind.instance_class(*map(self.argument, kind.types, values))
        if isinstance(kind, types.Array):
            return self._context.make_array(kind)(self._context, self.builder, value).data
        return self.spread(value)

    def spread(self, number):
        """A vector with an LLVM number in all lanes."""
        vector = ir.Constant(ir.VectorType(number.type, self.n), ir.Undefined)
        for k in range(self.n):
            vector = self.builder.insert_element(vector, number, ir.IntType(32)(k))
        return _Vector(self, vector)

    def load(self, array, row=0):
        return _Vector(self, self.builder.load(self._vector_at(array, row), align=4))

    def store(self, array, values, row=0):
        self.builder.store(values.value, self._vector_at(array, row), align=4)

    def load_at(self, array, first):
        place = self._vector_from(array, first)
        return _Vector(self, self.builder.load(place, align=self._size_of(array)))

    def store_at(self, array, values, first):
        item, values = array.type.pointee, values.value
        if values.type.element.width < item.width:
            values = self.builder.zext(values, ir.VectorType(item, self.n))
        self.builder.store(values, self._vector_from(array, first), align=self._size_of(array))

    def _size_of(self, array):
        return self._context.get_abi_sizeof(array.type.pointee)

    def _vector_from(self, array, first):
        kind = ir.VectorType(array.type.pointee, self.n).as_pointer()
        return self.builder.bitcast(self.builder.gep(array, [first.value]), kind)

    def store_chosen(self, array, values, condition, first):
        kind, mask = values.value.type, condition.value.type
        if knows(self._context, "avx512f"):
            name = f"llvm.x86.avx512.mask.compress.v{self.n}i{kind.element.width}"
            how = ir.FunctionType(kind, [kind, kind, mask])
            compress = cgutils.get_or_insert_function(self.builder.module, how, name)
            nothing = ir.Constant(kind, [0] * self.n)
            chosen = self.builder.call(compress, [values.value, nothing, condition.value])
            self.store_at(array, _Vector(self, chosen), first)
            return
        bits = self.builder.bitcast(condition.value, ir.IntType(self.n))
        for lane in range(0, self.n, _PERMUTED):
            part = _CompiledLanes(_PERMUTED, self._context, self.builder)
            its_bits = self.builder.lshr(bits, bits.type(lane))
            its_bits = self.builder.trunc(its_bits, ir.IntType(_PERMUTED))
            part.store_at(array, part._permuted(values, lane, its_bits), first)
            n_chosen = self.builder.zext(self.builder.ctpop(its_bits), ir.IntType(64))
            first = first + _Vector(self, n_chosen)

    def _permuted(self, values, lane, bits):
        """Take items of 32 bits of a wider vector, from a lane on, those whose bits are set first.

        bits    0 1 0 0 1 1 0 0        a table has the order for each of the 256 patterns,
        order   1 4 5 0 2 3 6 7        one byte per lane
        """
        builder, kind = self.builder, ir.VectorType(ir.IntType(32), self.n)
        byte = ir.VectorType(ir.IntType(8), self.n)
        orders = ir.Constant(ir.ArrayType(byte, len(_ORDERS)), [byte(each) for each in _ORDERS])
        table = cgutils.global_constant(builder.module, "cart.orders", orders)
        place = [ir.IntType(64)(0), builder.zext(bits, ir.IntType(64))]
        order = builder.zext(builder.load(builder.gep(table, place), align=self.n), kind)
        mine = ir.Constant(kind, list(range(lane, lane + self.n)))
        mine = builder.shuffle_vector(values.value, values.value, mine)
        how = ir.FunctionType(kind, [kind, kind])
        permute = cgutils.get_or_insert_function(builder.module, how, "llvm.x86.avx2.permd")
        return _Vector(self, builder.call(permute, [mine, order]))

    def count(self, condition):
        bits = self.builder.bitcast(condition.value, ir.IntType(self.n))
        return _Vector(self, self.builder.zext(self.builder.ctpop(bits), ir.IntType(64)))

    def is_at_most(self, values, others):
        return _Vector(self, self.builder.icmp_unsigned("<=", values.value, others.value))

    def gather_each(self, array, places):
        builder, number = self.builder, ir.IntType(32)
        found = ir.Constant(ir.VectorType(array.type.pointee, self.n), ir.Undefined)
        for k in range(self.n):
            place = builder.extract_element(places.value, number(k))
            item = builder.load(builder.gep(array, [builder.zext(place, ir.IntType(64))]))
            found = builder.insert_element(found, item, number(k))
        return _Vector(self, found)

    def item(self, array, i):
        return self.builder.load(self.builder.gep(array, [ir.IntType(64)(i)]))

    def same(self, array, i):
        i = i.value if isinstance(i, _Vector) else ir.IntType(64)(i)
        return self.spread(self.builder.load(self.builder.gep(array, [i])))

    def number(self, value):
        return _Vector(self, self.builder.extract_element(value.value, ir.IntType(32)(0)))

    def repeat(self, n, step, *carried):
        no, none = ir.IntType(1)(0), _Vector(self, ir.IntType(64)(0))

        def go_on(k, *carried):
            following = step(k, *carried)
            return no, following, following

        return self.repeat_until(none, n, go_on, *carried)[1:]

    def repeat_until(self, begin, end, step, *carried):
        builder, before = self.builder, self.builder.block
        inside = builder.append_basic_block("repeat")
        builder.branch(inside)
        builder.position_at_end(inside)
        first = begin, *carried
        now = [_Vector(self, builder.phi(each.value.type)) for each in first]
        is_last, here, following = step(*now)
        here, following = (now[0], *here), (now[0] + 1, *following)
        for each, at_first, then in zip(now, first, following, strict=True):
            each.value.add_incoming(at_first.value, before)
            each.value.add_incoming(then.value, builder.block)
        behind = builder.append_basic_block("done")
        is_over = builder.icmp_signed("==", following[0].value, end.value)
        builder.cbranch(builder.or_(is_last, is_over), behind, inside)
        builder.position_at_end(behind)
        chosen = (
            builder.select(is_last, one.value, other.value)
            for one, other in zip(here, following, strict=True)
        )
        return tuple(_Vector(self, value) for value in chosen)

    def everywhere(self, number):
        return self.spread(number.value)

    def choose(self, is_so, one, other):
        builder = self.builder
        is_so = builder.icmp_unsigned("!=", is_so.value, is_so.value.type(0))
        with builder.if_else(is_so) as branches:
            found = []
            for branch, do in zip(branches, (one, other), strict=True):
                with branch:
                    found.append(([each.value for each in do()], builder.block))
        chosen = [builder.phi(value.type) for value in found[0][0]]
        for values, block in found:
            for each, value in zip(chosen, values, strict=True):
                each.add_incoming(value, block)
        return tuple(_Vector(self, value) for value in chosen)

    def real(self, values):
        return self._turned(values, "sitofp", ir.FloatType())

    def with_bits(self, values):
        return self._turned(values, "bitcast", ir.FloatType())

    def bits(self, values):
        return self._turned(values, "bitcast", ir.IntType(32))

    def single(self, values):
        is_single = isinstance(values.value.type.element, ir.FloatType)
        return values if is_single else self._turned(values, "fptrunc", ir.FloatType())

    def double(self, values):
        return self._turned(values, "fpext", ir.DoubleType())

    def _turned(self, values, how, item):
        kind = ir.VectorType(item, self.n)
        return _Vector(self, getattr(self.builder, how)(values.value, kind))

    def _vector_at(self, array, row):
        kind = ir.VectorType(array.type.pointee, self.n)
        if isinstance(row, _Vector):  # the same in all lanes, or a number
            row = row if isinstance(row.value.type, ir.IntType) else self.number(row)
            row = row.value
        row = row if isinstance(row, ir.Value) else ir.IntType(64)(row)
        if row.type.width < 64:  # as an unsigned number: LLVM would extend its sign
            row = self.builder.zext(row, ir.IntType(64))
        return self.builder.gep(self.builder.bitcast(array, kind.as_pointer()), [row])

    def gather_rows(self, array, places, width):
        builder, number = self.builder, ir.IntType(32)
        kind = ir.VectorType(array.type.pointee, width)
        parts = []
        for k in range(self.n):
            place = builder.extract_element(places.value, number(k))
            at = builder.bitcast(builder.gep(array, [place]), kind.as_pointer())
            parts.append(builder.load(at, align=self._context.get_abi_sizeof(kind.element)))
        # Join neighbours pairwise, so that their items j are side by side, until one is left.
        n = 1
        while len(parts) > 1:
            order = [side * width * n + j * n + k
                     for j in range(width) for side in (0, 1) for k in range(n)]  # fmt: skip
            mask = ir.Constant(ir.VectorType(number, len(order)), order)
            pairs = zip(parts[::2], parts[1::2], strict=True)
            parts, n = [builder.shuffle_vector(*pair, mask) for pair in pairs], 2 * n
        (whole,) = parts
        nothing = ir.Constant(whole.type, ir.Undefined)
        mine = ir.VectorType(number, n)
        rows = [ir.Constant(mine, list(range(j * n, (j + 1) * n))) for j in range(width)]
        return [_Vector(self, builder.shuffle_vector(whole, nothing, row)) for row in rows]

    def where(self, condition, values, others):
        if not isinstance(values, _Vector):
            values = _Vector(self, _constant(others.value.type, values))
        if not isinstance(others, _Vector):
            others = _Vector(self, _constant(values.value.type, others))
        chosen = self.builder.select(condition.value, values.value, others.value)
        return _Vector(self, chosen)

    def any(self, condition):
        bits = self.builder.bitcast(condition.value, ir.IntType(self.n))
        return self.builder.icmp_unsigned("!=", bits, bits.type(0))


def _constant(kind, number):
    """A constant of an LLVM type: a vector with the number in all lanes, or a number."""
    if isinstance(kind, ir.VectorType):
        return ir.Constant(kind, [kind.element(number)] * kind.count)
    return kind(number)


def _operator(of_reals, of_numbers, *how):
    """A binary operator by LLVM's instructions: one for floats, one for integers."""

    def operate(self, other):
        kind = self.value.type
        if not isinstance(other, _Vector):
            other = _Vector(self.lanes, _constant(kind, other))
        item = kind.element if isinstance(kind, ir.VectorType) else kind
        write = of_reals if isinstance(item, (ir.DoubleType, ir.FloatType)) else of_numbers
        write = getattr(self.lanes.builder, write)
        return _Vector(self.lanes, write(*how, self.value, other.value))

    return operate


class _Vector:
    """A vector of numbers, or a number, whose every operation is an instruction of LLVM."""

    def __init__(self, lanes, value):
        self.lanes = lanes
        self.value = value

    __add__ = _operator("fadd", "add")
    __sub__ = _operator("fsub", "sub")
    __mul__ = _operator("fmul", "mul")
    __truediv__ = _operator("fdiv", "sdiv")
    __rshift__ = _operator(None, "lshr")
    __lshift__ = _operator(None, "shl")
    __or__ = _operator(None, "or_")
    __xor__ = _operator(None, "xor")
    __and__ = _operator(None, "and_")
    __gt__ = _operator("fcmp_ordered", "icmp_signed", ">")
    __le__ = _operator("fcmp_ordered", "icmp_signed", "<=")


def on_lanes(n, gives_number=False):
    """Compile a function for kernels to vector instructions.

    The compiler vectorizes loops only if it can prove that arrays do not overlap, and if nothing is
    looked up.

    Parameters
    ----------
    n : int
        Width of the vectors.
    gives_number : bool
        Whether the function returns an integer.

    Returns
    -------
    decorator
        Of a `function(lanes, *arguments)` that does all its work by the methods of `lanes`, a
        `PlainLanes`, and has no branches but theirs. Arguments are contiguous arrays, numbers,
        which arrive as vectors, and NamedTuples of these. The function returns a number if
        `gives_number`, else `lanes.any(condition)` or nothing. Kernels call it as
        `function(*arguments)`.
    """

    def decorate(function):
        if numba.config.DISABLE_JIT:
            return functools.partial(function, PlainLanes(n))

        @intrinsic
        def compiled(typing_context, *arguments):
            def generate(context, builder, signature, values):
                lanes = _CompiledLanes(n, context, builder)
                kinds, values = signature.args[0].types, cgutils.unpack_tuple(builder, values[0])
                found = function(lanes, *map(lanes.argument, kinds, values))
                found = found.value if isinstance(found, _Vector) else found
                return context.get_constant(types.boolean, False) if found is None else found

            answer = types.int64 if gives_number else types.boolean
            return answer(types.StarArgTuple(arguments)), generate

        return compiled

    return decorate
