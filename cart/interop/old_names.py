"""Former names of modules: importing or unpickling them gives the modules of today.

Where a wing has the name of an old module (`cart.tree`), its `__init__` exports what that had.
"""

import sys
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.util import spec_from_loader

# Modules that moved into a wing and kept their name.
_INTO_WINGS = {
    "cart.estimators": ("grower", "outputs", "parameters", "target"),
    "cart.growth": ("plan",),
    "cart.interop": ("bridge", "export"),
    "cart.primitives": ("threads",),
    "cart.splitting": ("criteria",),
    "cart.table": ("bins", "columns", "precision", "thresholds"),
    "cart.tree": ("batch", "compact", "nodes", "packed"),
    "forest.estimators": ("bagging", "base", "parameters"),
    "forest.inference": ("intervals", "jackknife", "proximity", "quantiles", "training_rows"),
    "forest.interop": ("bridge",),
    "forest.partitioned": ("dask",),
    "forest.sampling": ("bootstrap", "weights"),
    "importance.conditional": ("association", "donors", "exchange"),
    "importance.core": ("groups", "losses", "plots", "result"),
    "importance.impurity": ("debiased",),
    "importance.inference": ("janitza", "refit", "selector", "shadow", "subsampling"),
    "importance.permutation": (
        "class_share",
        "definitions",
        "expectation",
        "forest_level",
        "shuffling",
        "tree_level",
    ),
    "importance.report": ("advice", "comparison", "find_groups"),
}
_RENAMED = {
    "cart.along": "cart.fast_paths.regression.sorted_rows",
    "cart.bits": "cart.table.float_table",
    "cart.categories": "cart.estimators.category_encoder",
    "cart.class_cuts": "cart.fast_paths.classification.best_cut",
    "cart.class_screen": "cart.fast_paths.classification.screening",
    "cart.draw": "cart.splitting.feature_draw",
    "cart.fast_paths.category_rows": "cart.fast_paths.regression.category_rows",
    "cart.few": "cart.fast_paths.regression.small_nodes.node",
    "cart.few_means": "cart.fast_paths.regression.small_nodes.subtree",
    "cart.floats": "cart.primitives.float_order",
    "cart.grow": "cart.growth.general",
    "cart.indices": "cart.jit.unsigned_indices",
    "cart.kernel_cache": "cart.jit.disk_cache",
    "cart.levels": "cart.table.distinct_values",
    "cart.mean_cuts": "cart.fast_paths.regression.best_cut",
    "cart.mean_node": "cart.fast_paths.regression.node_sums",
    "cart.mean_score": "cart.fast_paths.regression.cut_score",
    "cart.mean_screen": "cart.fast_paths.regression.large_nodes.screening",
    "cart.near": "cart.fast_paths.cache_copies",
    "cart.network": "cart.primitives.sorting_networks",
    "cart.node": "cart.table.node_samples",
    "cart.order": "cart.primitives.sort_keys",
    "cart.prune": "cart.tree.pruning",
    "cart.quick": "cart.fast_paths.base",
    "cart.quick_classes": "cart.fast_paths.classification.path",
    "cart.quick_means": "cart.fast_paths.regression.sorted_path",
    "cart.quick_sums": "cart.fast_paths.regression.histograms.path",
    "cart.radix": "cart.primitives.radix_sort",
    "cart.rank": "cart.table.ranking",
    "cart.sieve": "cart.table.repeated_codes",
    "cart.split": "cart.splitting.splitter",
    "cart.stream": "cart.primitives.mersenne_twister",
    "cart.subsets": "cart.splitting.category_subsets",
    "cart.training": "cart.estimators.validation",
    "cart.traverse": "cart.tree.traversal",
    "cart.vectors": "cart.jit.simd",
    "cart.words": "cart.fast_paths.classification.packed_rows",
    "forest.enough": "forest.growing.stopping",
    "forest.grow": "forest.growing.thread_pool",
    "forest.growing.progress": "cart.primitives.progress",
    "forest.inference.row_fingerprints": "forest.inference.training_rows",
    "forest.leaves": "forest.inference.leaf_rows",
    "forest.oob": "forest.voting.out_of_bag",
    "forest.partitioned.cells": "forest.partitioned.histograms",
    "forest.progress": "cart.primitives.progress",
    "forest.stack": "forest.voting.stacking",
    "forest.vote": "forest.voting.rules",
    "importance.adopt": "importance.core.fitted_forest",
    "importance.dask": "importance.permutation.partitions",
    "importance.drop_column.evaluation": "importance.drop_column.refits",
    "importance.grouping": "importance.core.groups",
    "importance.held_out": "importance.permutation.oob",
    "importance.inference.selection": "importance.inference.shadow",
    "importance.judging": "importance.drop_column.refits",
    "importance.narrow": "importance.core.used_features",
    "importance.permutation.held_out": "importance.permutation.oob",
    "importance.selection": "importance.inference.shadow",
    "importance.shap.quadrature": "importance.shap.path_dependent",
    "importance.significance": "importance.inference.p_values",
    "importance.walked": "importance.permutation.prepared_tree",
    "importance.without": "importance.drop_column.refits",
}
NEW_NAMES = {
    f"{wing.partition('.')[0]}.{name}": f"{wing}.{name}"
    for wing, names in _INTO_WINGS.items()
    for name in names
} | _RENAMED
# Names that moved to another module than their old module did, or were renamed.
NEW_PLACES = {
    "forest.bootstrap": {
        "Patches": "forest.sampling.patches.Patches",
        "count_draws": "forest.sampling.plan.count_draws",
        "plan_bootstrap": "forest.sampling.plan.plan_bootstrap",
    },
    "forest.oob": {"Comparison": "forest.voting.out_of_bag.OutOfBagComparison"},
}


class _OldNames(MetaPathFinder, Loader):
    """Finds the module of today for an old name; both names then refer to the same module."""

    def __init__(self):
        self._specs = {}  # own specs of today's modules, which the import system overwrites

    def find_spec(self, fullname, path=None, target=None):
        return spec_from_loader(fullname, self) if fullname in NEW_NAMES else None

    def create_module(self, spec):
        module = import_module(NEW_NAMES[spec.name])
        self._specs[spec.name] = module.__spec__
        for old, new in NEW_PLACES.get(spec.name, {}).items():
            place, _, name = new.rpartition(".")
            setattr(module, old, getattr(import_module(place), name))
        return module

    def exec_module(self, module):
        module.__spec__ = self._specs.pop(module.__spec__.name)


def install() -> None:
    """Make old names importable; further calls do nothing."""
    if not any(isinstance(finder, _OldNames) for finder in sys.meta_path):
        sys.meta_path.append(_OldNames())


def keep_functions(package: str) -> None:
    """Keep old modules from replacing functions of the same name in a package.

    When an old module is first imported, the import system would set it as an attribute of the
    package. It does not if the module is in `sys.modules` already.
    """
    for old, new in NEW_NAMES.items():
        parent, _, name = old.rpartition(".")
        if parent == package and name in vars(sys.modules[package]) and new in sys.modules:
            sys.modules.setdefault(old, sys.modules[new])
