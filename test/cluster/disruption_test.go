//go:build cluster

package cluster

import "slices"

// disruptionScenarios end programs and nodes. Each gives back what it took.
var disruptionScenarios = nodeDisruptions

// untriedDisruptions have not passed on a cluster yet: see untried. They also end controllers, and take the cloud away.
var untriedDisruptions = slices.Concat([]scenario{
	{"a node loses its power, its volumes move after the taint, and it returns", loseNode},
}, controllerDisruptions, cloudDisruptions)
