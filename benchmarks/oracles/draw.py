"""The feature draw in plain Python, as `node_split_best` in scikit-learn's `_splitter.pyx`."""


class FeatureDraw:
    """Which features the nodes of one tree look at, asked node after node."""

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
        """What a node searches, in order, and how many features are constant by then.

        Parameters
        ----------
        is_constant : sequence of bool
            Of each feature, in this node.
        n_known : int
            How many features were constant in the parent.
        search : callable, default: returns the feature
            Called with each feature that is searched, at once: it may draw from the stream.
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
