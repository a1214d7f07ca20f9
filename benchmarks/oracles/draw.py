"""The feature draw of `node_split_best` in scikit-learn's `_splitter.pyx`, in plain Python."""


class FeatureDraw:
    """The features that the nodes of one tree look at, drawn node after node."""

    def __init__(self, n_features, max_features, seed):
        self.max_features = max_features
        self.state = seed or 1
        self.features = list(range(n_features))
        self.constant_features = [0] * n_features

    def next_number(self):
        """The next number of the xorshift stream (13, 17, 5), in [0, 2**31)."""
        self.state ^= self.state << 13 & 0xFFFFFFFF
        self.state ^= self.state >> 17
        self.state ^= self.state << 5 & 0xFFFFFFFF
        return self.state % 2**31

    def random_below(self, n):
        """A whole number in [0, n)."""
        return self.next_number() % n

    def random_between(self, low, high):
        """A number in [low, high]."""
        return (high - low) * self.next_number() / (2**31 - 1) + low

    def draw(self, is_constant, n_known, search=lambda feature: feature):
        """Draw the features of a node: which it searches, in order, and how many are then constant.

        Parameters
        ----------
        is_constant : sequence of bool
            Whether each feature is constant in this node.
        n_known : int
            How many features were known to be constant in the parent.
        search : callable, default: returns the feature
            Called with each searched feature as soon as it is drawn, because it may draw from the
            stream itself; its results are returned.
        """
        features = self.features
        searched = []
        n_visited = n_drawn = n_found = 0
        f_i = len(features)
        while f_i > n_known + n_found and (
            n_visited < self.max_features or n_visited <= n_found + n_drawn
        ):
            n_visited += 1
            f_j = n_drawn + self.random_below(f_i - n_found - n_drawn)
            if f_j < n_known:
                features[n_drawn], features[f_j] = features[f_j], features[n_drawn]
                n_drawn += 1
                continue
            f_j += n_found
            if is_constant[features[f_j]]:
                end = n_known + n_found
                features[f_j], features[end] = features[end], features[f_j]
                n_found += 1
                continue
            feature = features[f_j]
            f_i -= 1
            features[f_i], features[f_j] = features[f_j], features[f_i]
            searched.append(search(feature))
        end = n_known + n_found
        features[:n_known] = self.constant_features[:n_known]
        self.constant_features[n_known:end] = features[n_known:end]
        return searched, end
