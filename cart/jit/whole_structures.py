"""Structures go from kernel to kernel as they are: a NamedTuple is one argument of LLVM's.

    numba's way   f(data, size, stride, ..., data, size, stride, ...)    every field of every array
    here          f({{data, size, stride, ...}, {data, size, stride, ...}})

numba takes them apart where a kernel is called and puts them together where it begins: hundreds of
instructions for each call, to be written down, read and simplified away.
"""

import copy
import functools

from numba import types
from numba.core.datamodel import default_manager
from numba.core.datamodel.models import TupleModel


class _Whole(TupleModel):
    """A structure that stays one as an argument."""

    def get_argument_type(self):
        return self.get_value_type()

    def as_argument(self, builder, value):
        return value

    def from_argument(self, builder, value):
        return value


@functools.cache
def _models():
    models = default_manager.copy()
    models.register(types.NamedTuple, _Whole)
    return models


def pass_structures_whole(context):
    """numba's target, with structures as arguments of the kernels that are compiled for it."""
    context = copy.copy(context)
    context.data_model_manager = _models()
    return context
