"""A numba pass that makes the indices of kernels unsigned: there is no item -1.

In numba, as in NumPy, a negative index counts from the end, so that every access first checks the
sign. Our kernels never count from the end and do not need the check.
"""

from numba import types
from numba.core import ir
from numba.core.compiler_machinery import FunctionPass, register_pass
from numba.core.typed_passes import NopythonRewrites


@register_pass(mutates_CFG=False, analysis_only=False)
class _UnsignedIndices(FunctionPass):
    """Type the integers that index arrays as unsigned."""

    _name = "unsigned_indices"

    def __init__(self):  # numba's is abstract
        super().__init__()

    def run_pass(self, state):
        state.calltypes = {
            node: _with_unsigned_indices(signature) if _is_access(node, signature) else signature
            for node, signature in state.calltypes.items()
        }
        return True


def with_unsigned_indices(pipelines):
    """Add the pass to numba's pipelines, and return them."""
    for pipeline in pipelines:
        pipeline.add_pass_after(_UnsignedIndices, NopythonRewrites)
        pipeline.finalize()
    return pipelines


def _is_access(node, signature):
    is_read = isinstance(node, ir.Expr) and node.op == "getitem"
    is_written = isinstance(node, ir.SetItem)
    return (is_read or is_written) and isinstance(signature.args[0], types.Array)


def _with_unsigned_indices(signature):
    array, index, *rest = signature.args
    return signature.replace(args=(array, _unsigned(index), *rest))


def _unsigned(index):
    if isinstance(index, types.BaseTuple):
        return types.Tuple([_unsigned(part) for part in index])
    return types.uintp if isinstance(index, types.Integer) else index
