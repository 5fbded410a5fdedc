//go:build cluster

package cluster

var lifecycleScenarios []scenario
