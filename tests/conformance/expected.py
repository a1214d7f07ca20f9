"""scikit-learn's tests that fail on our classes, each with the reason: all others pass.

A test is named by its file and function, with parameters where the others pass.
"""

WORDING = "message or warning worded otherwise"
PRIVATE = "private attribute or compiled internals"
DEVIATION = "deliberate difference, in docs/deviations.md"
MOST_WORDINGS = 12

_BOOTSTRAP = "reads _n_samples_bootstrap of the forest"
_PRUNED = "prunes a compiled tree by a kernel that takes nothing else"

LISTS = {
    WORDING: {
        "test_tree.py::test_min_sample_split_1_error": "the range ends at 2**63 - 1, not at inf",
        "test_forest.py::test_poisson_y_positive_check": (
            'forests say "strictly positive", trees "positive": here both say what trees say'
        ),
        "test_forest.py::test_max_samples_bootstrap": "names max_sample, which is max_samples",
    },
    PRIVATE: {
        "test_tree.py::test_build_pruned_tree_py": _PRUNED,
        "test_tree.py::test_build_pruned_tree_infinite_loop": _PRUNED,
        "test_forest.py::test_mse_criterion_object_segfault_smoke_test": (
            "passes a compiled criterion; ours are named"
        ),
        "test_forest.py::test_validate_y_class_weight": "calls _validate_y_class_weight",
        "test_forest.py::test_class_weights_forest": "reads _sample_weight",
        "test_forest.py::test_oob_not_computed_twice": "wraps _set_oob_score_and_attributes",
        "test_forest.py::test_max_samples_geq_one": _BOOTSTRAP,
        "test_bagging.py::test_max_samples_consistency": "reads _max_samples",
        "test_base.py::test_base": "calls _make_estimator of Bagging",
        "test_base.py::test_pickle_version_warning_is_not_raised_with_matching_version": (
            "its version is in the pickles of its own classes alone"
        ),
        "test_partial_dependence.py::test_recursion_decision_tree_vs_forest_and_gbdt[0]": (
            "recursion asks for its own classes, see docs/other-tools.md"
        ),
    },
    DEVIATION: {
        "test_tree.py::test_huge_allocations": "memory that is not needed is not asked for",
        "test_bagging.py::test_warm_start_with_oob_score_fails": (
            "Bagging: oob_score=True with warm_start=True"
        ),
        "test_metaestimators.py::test_metaestimator_delegation": (
            "Bagging: decision_function of an estimator that says it met no class"
        ),
    },
}

# Left out of `make test`; most of their time is spent in support vector machines.
SLOW = {
    "test_bagging.py::test_oob_score_classification",
    "test_bagging.py::test_parallel_classification",
    "test_bagging.py::test_sparse_classification",
}
