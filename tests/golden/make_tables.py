"""The tables that make_golden.R reads, as scikit-learn has them."""

from pathlib import Path

from sklearn.datasets import load_diabetes, load_iris

HERE = Path(__file__).resolve().parent

if __name__ == "__main__":
    for name, table in (
        ("iris", load_iris(as_frame=True)),
        ("diabetes", load_diabetes(as_frame=True, scaled=False)),
    ):
        table.frame.to_csv(HERE / f"{name}.csv", index=False)
