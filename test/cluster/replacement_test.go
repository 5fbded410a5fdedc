//go:build cluster

package cluster

var replacementScenarios []scenario
