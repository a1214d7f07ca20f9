"""Save fitted estimators of every kind in model files of format 1, with what they predict.

`python -m tests.golden.make_models` wrote the files when there was the first format. Later versions
load them and predict the same (`tests/cart/files/test_model_files.py`): never write them again.
"""

from pathlib import Path

import numpy as np

from tests.golden.make_pickles import CASES, outputs

FOLDER = Path(__file__).parent / "models"


def main():
    FOLDER.mkdir(exist_ok=True)
    predicted = {}
    for name, (model, table) in CASES.items():
        X, y = table()
        model = model.set_params(random_state=0).fit(X, y)
        if name == "random_forest_regressor":
            model.keep_leaves()  # which quantiles take
        model.save(FOLDER / f"{name}.safetensors")
        predicted[name] = outputs(model, X)
    np.savez_compressed(FOLDER / "predictions.npz", **predicted)


if __name__ == "__main__":
    main()
