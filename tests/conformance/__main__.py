"""Run scikit-learn's tests on our classes: `python -m tests.conformance [suites and options]`.

`around` is short for what scikit-learn has around estimators: all its test modules that use trees
and forests, but for those of trees and forests themselves.
"""

import os
import sys
from pathlib import Path

import pytest
import sklearn

SUITES = (
    "sklearn.tree.tests",
    "sklearn.ensemble.tests.test_forest",
    "sklearn.ensemble.tests.test_bagging",
)

AROUND = (
    "sklearn.ensemble.tests.test_base",
    "sklearn.ensemble.tests.test_common",
    "sklearn.ensemble.tests.test_stacking",
    "sklearn.ensemble.tests.test_voting",
    "sklearn.ensemble.tests.test_weight_boosting",
    "sklearn.feature_selection.tests.test_from_model",
    "sklearn.feature_selection.tests.test_rfe",
    "sklearn.impute.tests.test_impute",
    "sklearn.inspection.tests.test_partial_dependence",
    "sklearn.inspection.tests.test_permutation_importance",
    "sklearn.inspection._plot.tests.test_boundary_decision_display",
    "sklearn.metrics.tests.test_classification",
    "sklearn.metrics.tests.test_score_objects",
    "sklearn.metrics._plot.tests.test_common_curve_display",
    "sklearn.model_selection.tests.test_classification_threshold",
    "sklearn.model_selection.tests.test_plot",
    "sklearn.model_selection.tests.test_search",
    "sklearn.model_selection.tests.test_validation",
    "sklearn.preprocessing.tests.test_target_encoder",
    "sklearn.semi_supervised.tests.test_self_training",
    "sklearn.tests.test_base",
    "sklearn.tests.test_calibration",
    "sklearn.tests.test_metaestimators",
    "sklearn.tests.test_metaestimators_metadata_routing",
    "sklearn.tests.test_multiclass",
    "sklearn.tests.test_multioutput",
    "sklearn.tests.test_pipeline",
    "sklearn.utils._repr_html.tests.test_estimator",
    "sklearn.utils.tests.test_class_weight",
    "sklearn.utils.tests.test_parallel",
    "sklearn.utils.tests.test_response",
    "sklearn.utils.tests.test_validation",
)

# The installed tests, under no configuration but their own.
OPTIONS = (
    *("-q", "--disable-warnings", "-p", "no:cacheprovider", "-p", "tests.conformance.plugin"),
    *("-c", os.devnull, "--rootdir", str(Path(sklearn.__file__).parents[1])),
)

if __name__ == "__main__":
    given = [name for word in sys.argv[1:] for name in (AROUND if word == "around" else [word])]
    suites = [name for name in given if name.startswith("sklearn.")] or SUITES
    others = [option for option in given if option not in suites]
    sys.exit(pytest.main([*OPTIONS, *others, "--pyargs", *suites]))
