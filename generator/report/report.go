// Package report shows inventories and plans to people: as tables in a terminal and as one HTML page. Pipelines read YAML or JSON; nothing
// here is stable.
package report

import (
	"fmt"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

// amount writes a limit; OpenStack's -1 means that there is none.
func amount(n int) string {
	if n < 0 {
		return "unlimited"
	}
	return thousands(n)
}

// thousands groups the digits, because quotas in GiB have many.
func thousands(n int) string {
	if n < 0 {
		return "-" + thousands(-n)
	}
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", thousands(n/1000), n%1000)
}

// count writes a number with its noun: "1 zone", "2 zones".
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return thousands(n) + " " + noun + "s"
}

// unknown says why a fact is not known.
func unknown(state v1alpha1.State, reason string) string {
	if reason == "" {
		return string(state)
	}
	return string(state) + " (" + reason + ")"
}
