// Package cause names the reasons of errors that a person may have to act on. Each has an ID that no release changes, so programs, metrics and
// people compare IDs and read sentences.
//
// The driver puts the ID at the end of the message of an error. Sidecars and kubelet write code and message into
// events, and nothing else.
package cause

import (
	"regexp"
	"slices"
	"strings"
)

// ID names a cause: "attach.reserved".
type ID string

// Actor is a person who can remove a cause.
type Actor string

// The actors.
const (
	Nobody  Actor = "nobody" // there is nothing to do
	User    Actor = "app developer"
	Cluster Actor = "cluster administrator"
	Cloud   Actor = "cloud administrator"
)

// Cause is one row of the table.
type Cause struct {
	ID    ID
	Means string // one clause
	Do    string // what removes the cause, in the imperative
	Who   Actor
	// Passes says that the cause may end without anybody's help: the driver or Kubernetes tries again.
	Passes bool
}

// driverCauses are the rows that returned adds (driver.go), and claimCauses those that found adds (claim.go).
var (
	driverCauses, claimCauses []Cause
	returned, found           = rows(&driverCauses), rows(&claimCauses)
)

// rows returns a function that adds a row to a table, and returns its ID.
func rows(table *[]Cause) func(id ID, means, do string, who Actor, passes bool) ID {
	return func(id ID, means, do string, who Actor, passes bool) ID {
		*table = append(*table, Cause{id, means, do, who, passes})
		return id
	}
}

// Driver reports whether the driver returns the cause with an error. The others are what kubectl cinder finds when it compares Kubernetes, Cinder
// and Nova.
func (c Cause) Driver() bool {
	return slices.ContainsFunc(driverCauses, func(other Cause) bool { return other.ID == c.ID })
}

// All returns every cause, in the order of the pages.
func All() []Cause { return slices.Concat(driverCauses, claimCauses) }

// Find returns the row of an ID.
func Find(id ID) (Cause, bool) {
	all := All()
	if i := slices.IndexFunc(all, func(c Cause) bool { return c.ID == id }); i >= 0 {
		return all[i], true
	}
	return Cause{}, false
}

// Near returns the IDs that somebody may have meant: those of the same group, or with the same second part.
func Near(id ID) (near []ID) {
	group, name, _ := strings.Cut(string(id), ".")
	for _, c := range All() {
		otherGroup, otherName, _ := strings.Cut(string(c.ID), ".")
		if group == otherGroup || name != "" && name == otherName {
			near = append(near, c.ID)
		}
	}
	return near
}

// End returns a message with the ID of its cause at the end, in the form that In reads.
func End(message string, id ID) string {
	if id == "" {
		return message
	}
	return message + " [" + string(id) + "]"
}

var ending = regexp.MustCompile(`\[([a-z]+\.[a-z]+(?:-[a-z]+)*)\]`)

// In returns the cause in the text of an event or a log; empty if there is none. The last one counts: what a cloud answered stands before it.
func In(text string) ID {
	for _, match := range slices.Backward(ending.FindAllStringSubmatch(text, -1)) {
		if c, known := Find(ID(match[1])); known && c.Driver() {
			return c.ID
		}
	}
	return ""
}

// Text describes a cause for a terminal.
func (c Cause) Text() string {
	passes := "no; somebody must act"
	if c.Passes {
		passes = "yes, it may; if it stays, act"
	}
	by := "kubectl cinder, which compares Kubernetes, Cinder and Nova"
	if c.Driver() {
		by = "the driver, at the end of the message of an error"
	}
	return "cause:   " + string(c.ID) + "\nmeans:   " + c.Means + "\ndo:      " + c.Do + "\nwho:     " + string(c.Who) + "\npasses:  " + passes + "\nfrom:    " + by + "\n"
}
