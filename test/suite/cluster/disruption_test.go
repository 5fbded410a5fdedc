//go:build cluster

package cluster

import "slices"

// disruptionScenarios end programs, nodes and controllers. Each gives back what it took.
var disruptionScenarios = slices.Concat(nodeDisruptions, cloudDisruptions, controllerDisruptions)
