//go:build cluster

package cluster

var storageScenarios []scenario
