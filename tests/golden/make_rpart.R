# Trees as R's rpart grows, prunes and describes them: the splits with their competitors and
# surrogates, the cp table with given folds, importances, predictions with missing values.
# README.md beside this file says how to run it, and where the tables come from.

library(rpart)
library(jsonlite)

FOLDS <- 10

# ------------------------------------------------------------------------------------ tables

# Ordered factors as their codes, which is how rpart orders them; other factors as their labels.
plain <- function(table) {
  as.data.frame(lapply(table, function(column) {
    if (is.ordered(column)) as.integer(column)
    else if (is.factor(column)) as.character(column)
    else column
  }))
}

tables <- list(
  stagec = stagec,
  kyphosis = kyphosis,
  solder = solder,
  # Labels of a few cars each, as rpart's introduction leaves them out.
  car90 = car90[, !names(car90) %in% c("Rim", "Tires", "Model2")],
  cu_summary = cu.summary)
for (name in names(tables)) {
  write.csv(plain(tables[[name]]), paste0("rpart/", name, ".csv"), row.names = FALSE)
}

# Cells that are taken away to be predicted without: a fifth of them, by place.
thinned <- function(table) {
  for (j in seq_along(table)) table[(7 * seq_len(nrow(table)) + 3 * j) %% 5 == 0, j] <- NA
  table
}

# -------------------------------------------------------------------------------- descriptions

number <- function(x) signif(unname(x), 13)

# One row of fit$splits. `value` is the improvement of primaries and competitors, the agreement of
# surrogates. Numbers: `less_is_left` says where values below `threshold` go. Factors: the labels.
one_split <- function(fit, row, levels) {
  split <- fit$splits[row, ]
  out <- list(feature = rownames(fit$splits)[row], n = split[["count"]],
              value = number(split[["improve"]]))
  if (split[["ncat"]] < 2) {
    out$less_is_left <- split[["ncat"]] == -1
    out$threshold <- number(split[["index"]])
  } else {
    sides <- fit$csplit[split[["index"]], seq_len(split[["ncat"]])]
    out$left <- I(levels[[out$feature]][sides == 1])
    out$right <- I(levels[[out$feature]][sides == 3])
  }
  out
}

# The nodes by rpart's numbers: the children of node i are 2 i and 2 i + 1.
nodes_of <- function(fit) {
  levels <- attr(fit, "xlevels")
  begin <- 1
  lapply(seq_len(nrow(fit$frame)), function(i) {
    f <- fit$frame[i, ]
    out <- list(id = as.integer(rownames(fit$frame)[i]), n = f$n, weight = number(f$wt),
                risk = number(f$dev), complexity = number(f$complexity))
    if (fit$method == "class") {
      n_classes <- length(attr(fit, "ylevels"))
      out$label <- attr(fit, "ylevels")[f$yval]
      out$counts <- I(number(f$yval2[1 + seq_len(n_classes)]))
      out$shares <- I(number(f$yval2[1 + n_classes + seq_len(n_classes)]))
    } else {
      out$value <- number(f$yval)
    }
    if (f$var != "<leaf>") {
      rows <- begin + seq_len(1 + f$ncompete + f$nsurrogate) - 1
      begin <<- begin + length(rows)
      splits <- lapply(rows, function(row) one_split(fit, row, levels))
      out$primary <- splits[[1]]
      out$competitors <- splits[1 + seq_len(f$ncompete)]
      out$surrogates <- lapply(seq_len(f$nsurrogate), function(k) {
        row <- rows[1 + f$ncompete + k]
        split <- one_split(fit, row, levels)
        c(split, adj = number(fit$splits[row, "adj"]))
      })
    }
    out
  })
}

# ----------------------------------------------------------------------------------------- fits

FEATURES <- list(
  stagec = c("age", "eet", "g2", "grade", "gleason", "ploidy"),
  kyphosis = c("Age", "Number", "Start"),
  solder = c("Opening", "Solder", "Mask", "PadType", "Panel"),
  car90 = setdiff(names(tables$car90), "Price"),
  cu_summary = c("Price", "Country", "Mileage", "Type"))

golden <- list()

# Fits one tree. `weighted`: row i weighs 1 + i modulo 3. Folds by row number among rows that have
# a response, in turn.
add <- function(name, data, response, method, parms = list(), weighted = FALSE,
                features = FEATURES[[data]], ...) {
  table <- tables[[data]]
  table <- table[!is.na(table[[response]]), ]
  y <- table[[response]]
  if (method == "class") y <- factor(y)
  frame <- table[, features, drop = FALSE]
  frame$.y <- y
  frame$.w <- if (weighted) 1 + seq_len(nrow(frame)) %% 3 else rep(1, nrow(frame))
  folds <- 1 + seq_len(nrow(frame)) %% FOLDS
  given <- list(...)
  control <- do.call(rpart.control, c(given, list(xval = folds)))
  formula <- as.formula(paste(".y ~", paste(features, collapse = " + ")))
  arguments <- list(formula = formula, data = frame, weights = quote(.w), method = method,
                    control = control)
  if (length(parms)) arguments$parms <- parms
  fit <- do.call(rpart, arguments)
  at <- if (method == "class") "prob" else "vector"
  where <- as.integer(rownames(fit$frame))[fit$where]
  golden[[name]] <<- list(
    data = data, response = response, features = I(features), method = method,
    weighted = weighted,
    classes = if (method == "class") I(levels(y)),
    parms = if (length(parms)) lapply(parms, function(p) if (is.character(p)) p else I(p)),
    control = control[c("minsplit", "minbucket", "cp", "maxcompete", "maxsurrogate",
                        "usesurrogate", "surrogatestyle", "maxdepth")],
    nodes = nodes_of(fit),
    where = I(where),
    cp_table = list(columns = I(colnames(fit$cptable)), rows = number(fit$cptable)),
    importance = as.list(sapply(fit$variable.importance, number)),
    thinned = number(predict(fit, thinned(frame[, features, drop = FALSE]), type = at)))
}

# Without missing values.
add("kyphosis", "kyphosis", "Kyphosis", "class")
add("kyphosis_deep", "kyphosis", "Kyphosis", "class", minsplit = 2, minbucket = 1, cp = 0)
add("kyphosis_entropy", "kyphosis", "Kyphosis", "class", parms = list(split = "information"))
add("kyphosis_priors", "kyphosis", "Kyphosis", "class", parms = list(prior = c(0.65, 0.35)))
add("kyphosis_loss", "kyphosis", "Kyphosis", "class",
    parms = list(loss = matrix(c(0, 2, 1, 0), 2)))
add("kyphosis_priors_and_loss", "kyphosis", "Kyphosis", "class", minsplit = 6, minbucket = 2,
    parms = list(prior = c(0.5, 0.5), loss = matrix(c(0, 3, 1, 0), 2)))
add("kyphosis_weights", "kyphosis", "Kyphosis", "class", weighted = TRUE, minsplit = 10,
    minbucket = 3)
add("kyphosis_limits", "kyphosis", "Kyphosis", "class", minsplit = 30, minbucket = 4, cp = 0.001,
    maxdepth = 2)
add("kyphosis_style_1", "kyphosis", "Kyphosis", "class", surrogatestyle = 1)
add("solder", "solder", "skips", "anova")
add("solder_balance", "solder", "skips", "anova", features = setdiff(FEATURES$solder, "Panel"),
    weighted = TRUE, cp = 0.005, maxdepth = 4)
add("solder_opening", "solder", "Opening", "class", features = c("Mask", "PadType", "Solder"),
    cp = 0.002)

add("stagec_costs", "stagec", "pgstat", "class", weighted = TRUE, minsplit = 10, minbucket = 4,
    features = c("age", "grade", "ploidy"), cp = 0.005,
    parms = list(prior = c(0.6, 0.4), loss = matrix(c(0, 2, 1, 0), 2)))

# With missing values.
for (use in 0:2) {
  add(paste0("stagec_use_", use), "stagec", "pgstat", "class", usesurrogate = use)
  add(paste0("stagec_style_1_use_", use), "stagec", "pgstat", "class", usesurrogate = use,
      surrogatestyle = 1, minsplit = 10, minbucket = 3)
}
add("stagec_priors_and_loss", "stagec", "pgstat", "class", weighted = TRUE,
    parms = list(prior = c(0.6, 0.4), loss = matrix(c(0, 2, 1, 0), 2)))
add("stagec_time", "stagec", "pgtime", "anova", minsplit = 12, minbucket = 4)
add("stagec_time_weights", "stagec", "pgtime", "anova", weighted = TRUE, surrogatestyle = 1)
add("car90", "car90", "Price", "anova")
add("car90_deep", "car90", "Price", "anova", minsplit = 8, minbucket = 3, cp = 0.001,
    surrogatestyle = 1)
add("car90_mileage", "car90", "Mileage", "anova", usesurrogate = 1)
add("cu_summary_mileage", "cu_summary", "Mileage", "anova",
    features = c("Price", "Country", "Reliability", "Type"))
add("cu_summary_price", "cu_summary", "Price", "anova", weighted = TRUE,
    features = c("Country", "Reliability", "Mileage", "Type"))
add("cu_summary", "cu_summary", "Reliability", "class")
add("cu_summary_numbers", "cu_summary", "Reliability", "class", features = c("Price", "Mileage"),
    minsplit = 8, minbucket = 3)

versions <- list(R = R.version.string, rpart = as.character(packageVersion("rpart")))
for (name in names(golden)) {
  found <- c(list(versions = versions), golden[[name]])
  write(toJSON(found, digits = NA, auto_unbox = TRUE, na = "null", null = "null"),
        paste0("rpart/", name, ".json"))
}
