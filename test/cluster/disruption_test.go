//go:build cluster

package cluster

var disruptionScenarios []scenario
