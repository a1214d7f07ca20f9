# Importances as R's randomForest and ranger compute them, with the trees they are of.
# README.md beside this file says how to run it.

library(randomForest)
library(ranger)
library(jsonlite)

N_TREES <- 10
# Primes: ranger gives tree t of a forest t times its seed, so with 1, 2, ... forests share trees.
SEEDS <- c(101, 103, 107, 109, 113, 127, 131, 137, 139, 149, 151, 157, 163, 167, 173, 179, 181, 191,
           193, 197, 199, 211, 223, 227, 229)

# How often each row is in bag: a digit per row.
digits_of <- function(counts) {
  stopifnot(counts >= 0, counts < 10)
  paste(counts, collapse = "")
}

# ---------------------------------------------------------------------------- randomForest

tree_of_random_forest <- function(fit, t) {
  tree <- getTree(fit, t)
  list(left = tree[, 1] - 1, right = tree[, 2] - 1, feature = tree[, 3] - 1,
       threshold = tree[, 4], prediction = tree[, 6])
}

one_random_forest <- function(x, y, seed, ...) {
  set.seed(seed)
  fit <- randomForest(x, y, ntree = N_TREES, localImp = TRUE, keep.inbag = TRUE, ...)
  sd <- fit$importanceSD
  out <- list(
    trees = lapply(seq_len(N_TREES), function(t) tree_of_random_forest(fit, t)),
    in_bag = apply(fit$inbag, 2, digits_of),
    raw = unname(randomForest::importance(fit, type = 1, scale = FALSE)[, 1]),
    scaled = unname(randomForest::importance(fit, type = 1, scale = TRUE)[, 1]),
    standard_error = unname(if (is.factor(y)) sd[, "MeanDecreaseAccuracy"] else sd),
    impurity = unname(randomForest::importance(fit, type = 2)[, 1]))
  if (is.factor(y)) out$by_class <- unname(t(fit$importance[, levels(y)]))
  list(stored = out, casewise = unname(t(fit$localImportance)))
}

# ---------------------------------------------------------------------------------- ranger

tree_of_ranger <- function(fit, t, y) {
  tree <- treeInfo(fit, t)
  or_zero <- function(v) ifelse(is.na(v), 0, v)
  prediction <- if (fit$treetype == "Probability estimation") {
    unname(as.matrix(tree[, paste0("pred.", levels(y))]))
  } else if (is.factor(y)) {
    as.integer(factor(tree$prediction, levels = levels(y)))
  } else {
    tree$prediction
  }
  prediction[is.na(prediction)] <- 0
  list(left = ifelse(tree$terminal, -1, tree$leftChild),
       right = ifelse(tree$terminal, -1, tree$rightChild),
       feature = ifelse(tree$terminal, -1, tree$splitvarID),
       threshold = or_zero(tree$splitval), prediction = prediction)
}

one_ranger <- function(x, y, seed, ...) {
  grow <- function(importance, ...) {
    ranger(x = x, y = y, num.trees = N_TREES, importance = importance, keep.inbag = TRUE,
           seed = seed, num.threads = 1, ...)
  }
  trees_of <- function(fit) lapply(seq_len(N_TREES), function(t) tree_of_ranger(fit, t, y))
  fit <- grow("permutation", ...)
  by_impurity <- grow("impurity", ...)
  scaled <- grow("permutation", scale.permutation.importance = TRUE, ...)
  casewise <- grow("permutation", local.importance = TRUE, ...) # which ignores scale
  trees <- trees_of(fit)
  for (other in list(by_impurity, scaled, casewise)) stopifnot(identical(trees, trees_of(other)))
  list(
    stored = list(
      trees = trees,
      in_bag = sapply(fit$inbag.counts, digits_of),
      raw = unname(fit$variable.importance),
      scaled = unname(scaled$variable.importance),
      impurity = unname(by_impurity$variable.importance)),
    casewise = unname(as.matrix(casewise$variable.importance.local)))
}

# ------------------------------------------------------------------------------- all of them

# In classification with `casewise`, a row per row of the table: the mean over the forests in which
# the row is out of bag for any tree.
many <- function(one, y, ...) {
  found <- lapply(SEEDS, function(seed) one(seed = seed, y = y, ...))
  out <- list(forests = lapply(found, function(f) f$stored))
  if (is.factor(y)) {
    casewise <- simplify2array(lapply(found, function(f) f$casewise))
    out$casewise <- apply(casewise, c(1, 2), mean, na.rm = TRUE)
  }
  out
}

iris <- read.csv("iris.csv")
iris_x <- iris[, names(iris) != "target"]
iris_y <- factor(iris$target)
diabetes <- read.csv("diabetes.csv")
diabetes_x <- diabetes[, names(diabetes) != "target"]

golden <- list(
  randomForest_classification = many(one_random_forest, x = iris_x, y = iris_y),
  randomForest_regression = many(one_random_forest, x = diabetes_x,
                                 y = diabetes$target, nPerm = 20, maxnodes = 10),
  ranger_classification = many(one_ranger, x = iris_x, y = iris_y),
  ranger_probability = many(one_ranger, x = iris_x, y = iris_y, probability = TRUE),
  ranger_regression = many(one_ranger, x = diabetes_x, y = diabetes$target,
                           max.depth = 3))

versions <- sapply(c("randomForest", "ranger"), function(p) as.character(packageVersion(p)))
for (name in names(golden)) {
  found <- c(list(versions = as.list(c(R = R.version.string, versions))), golden[[name]])
  write(toJSON(found, digits = NA, auto_unbox = TRUE), paste0(name, ".json"))
}
