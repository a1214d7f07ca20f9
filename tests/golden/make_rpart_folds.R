# What the held-out rows of each fold lose at each complexity, by rpart's trees of the folds, for the
# fits where some fold differs from ours; summed over folds it is rpart's own xerror.
# README.md beside this file says how to run it, after make_rpart.R.

library(rpart)
library(jsonlite)

# The tree of a fold as rpart grows it inside: rows weigh prior / share with the shares of the whole
# table, complexities are risks per weight of the whole table.
losses_of_folds <- function(response, method, prior = NULL, loss = NULL, weighted = FALSE, ...) {
  table <- read.csv("rpart/stagec.csv")
  table$ploidy <- factor(table$ploidy)
  table <- table[!is.na(table[[response]]), ]
  n <- nrow(table)
  is_class <- method == "class"
  table$.y <- if (is_class) factor(table[[response]]) else table[[response]]
  table$.w <- if (weighted) 1 + seq_len(n) %% 3 else rep(1, n)
  folds <- seq_len(n) %% 10
  formula <- .y ~ age + eet + g2 + grade + gleason + ploidy
  fit_to <- function(data, cp, prior, xval = 0) {
    parms <- if (is_class) list(prior = prior, loss = loss) else list()
    arguments <- list(formula = formula, data = data, weights = quote(.w), method = method,
                      control = rpart.control(cp = cp, xval = xval, ...))
    if (is_class) arguments$parms <- parms
    do.call(rpart, arguments)
  }
  whole <- fit_to(table, 0.01, prior, 1 + folds)
  root <- whole$frame$dev[1] / sum(table$.w)
  cps <- whole$cptable[, 1]
  halfway <- c(10 * cps[1], sqrt(cps[-1] * cps[-length(cps)]))
  factor_of <- rep(1, 2)
  if (is_class) factor_of <- prior / (tapply(table$.w, table$.y, sum) / sum(table$.w))
  lost <- t(sapply(0:9, function(fold) {
    inside <- table[folds != fold, ]
    outside <- table[folds == fold, ]
    altered <- NULL
    scale <- 1
    if (is_class) {
      altered <- factor_of * tapply(inside$.w, inside$.y, sum) / sum(inside$.w)
      scale <- sum(altered)
      altered <- c(1 - altered[[2]] / scale, altered[[2]] / scale)  # which sum to 1 without rounding
    }
    own_root <- fit_to(inside, 0.99, altered)$frame$dev[1] * scale / sum(inside$.w)
    fit <- fit_to(inside, 0.01 * root / own_root, altered)
    sapply(halfway, function(cp) {
      pruned <- prune(fit, cp = cp * root / own_root)
      if (!is_class) return(sum(outside$.w * (outside$.y - predict(pruned, outside))^2))
      said <- as.integer(predict(pruned, outside, type = "class"))
      truth <- as.integer(outside$.y)
      sum(outside$.w * factor_of[truth] * loss[cbind(said, truth)])  # transposed, as rpart does
    })
  }))
  xerror <- colSums(lost) / (root * sum(table$.w))
  stopifnot(isTRUE(all.equal(unname(xerror), unname(whole$cptable[, "xerror"]), tolerance = 1e-9)))
  unname(lost)
}

golden <- list(
  stagec_time = losses_of_folds("pgtime", "anova", minsplit = 12, minbucket = 4),
  stagec_priors_and_loss = losses_of_folds("pgstat", "class", c(0.6, 0.4),
                                           matrix(c(0, 1, 2, 0), 2, byrow = TRUE), TRUE))
write_json(golden, "rpart_folds.json", digits = 13)
