# The process that measures one R library on one table: Rscript forest.R, with a task as JSON on stdin.
# The table is in the folder task$data: X.bin, y.bin, X_test.bin and y_test.bin, columns of doubles.

task <- jsonlite::fromJSON(readLines(file("stdin"), warn = FALSE))
read <- function(name, n_columns) {
  path <- file.path(task$data, paste0(name, ".bin"))
  values <- readBin(path, "double", n = file.size(path) / 8)
  if (n_columns == 0) values else matrix(values, ncol = n_columns)
}
is_classification <- task$task == "classification"
X <- read("X", task$n_features)
X_test <- read("X_test", task$n_features)
colnames(X) <- colnames(X_test) <- paste0("x", seq_len(ncol(X)))
y <- read("y", 0)
y_test <- read("y_test", 0)
if (is_classification) y <- factor(y)
params <- task$params

fit <- function(rows, n_trees) {
  if (task$library == "ranger") {
    ranger::ranger(
      x = X[rows, , drop = FALSE], y = y[rows], num.trees = n_trees, mtry = task$n_candidates,
      min.node.size = 1, min.bucket = 1, oob.error = FALSE, num.threads = task$n_jobs, seed = 1,
      probability = is_classification
    )
  } else {
    set.seed(1)
    randomForest::randomForest(
      X[rows, , drop = FALSE], y[rows], ntree = n_trees, mtry = task$n_candidates, nodesize = 1
    )
  }
}
tell <- function(model) {
  if (task$library == "ranger") {
    said <- predict(model, X_test, num.threads = task$n_jobs)$predictions
    if (is_classification) colnames(said)[max.col(said, "first")] else said
  } else {
    said <- predict(model, X_test)
    if (is_classification) as.character(said) else said
  }
}
seconds <- function(work) {
  start <- proc.time()[["elapsed"]]
  result <- work()
  list(time = proc.time()[["elapsed"]] - start, result = result)
}

few <- unique(c(seq_len(min(2000, nrow(X))), if (is_classification) match(levels(y), y)))
invisible(fit(few, 2))
fitted <- seconds(function() fit(seq_len(nrow(X)), params$n_estimators))
predicted <- seconds(function() tell(fitted$result))
score <- if (is_classification) {
  mean(as.numeric(predicted$result) == y_test)
} else {
  1 - mean((y_test - predicted$result)^2) / mean((y_test - mean(y_test))^2)
}
cat(jsonlite::toJSON(list(
  version = as.character(packageVersion(task$library)), fit = fitted$time,
  predict = predicted$time, score = score
), auto_unbox = TRUE, digits = NA))
