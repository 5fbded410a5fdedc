//go:build cluster

package cluster

// disruptionScenarios end programs and nodes. Each gives back what it took.
var disruptionScenarios = nodeDisruptions
