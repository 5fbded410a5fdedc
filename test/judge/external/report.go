package external

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"time"
)

// Family begins the name of each of the storage tests. The program has tests of other things too, which never run.
const Family = "External Storage"

// Test is one test of a run.
type Test struct {
	Name    string        // with the texts of all that it is nested in
	State   string        // as ginkgo calls it: passed, skipped, failed, timedout, …
	Message string        // why it failed, or why it skipped itself; empty if the command line left it out
	Time    time.Duration // 0 if it did not run
}

var (
	driverLabel = regexp.MustCompile(`\[Driver: [^\]]*\] `)
	suiteLabel  = regexp.MustCompile(`^External Storage \[Testpattern: ([^\]]*)\] (?:\[[^\]]*\] )*(\S+)`)
)

// Suite is the group of tests that Kubernetes defines together, such as provisioning.
func (t Test) Suite() string {
	if m := suiteLabel.FindStringSubmatch(t.short()); m != nil {
		return m[2]
	}
	return "other"
}

func (t Test) short() string { return driverLabel.ReplaceAllString(t.Name, "") }

// ParseReport gives the storage tests in a report of ginkgo's --json-report.
func ParseReport(content []byte) ([]Test, error) {
	var reports []struct {
		SpecReports []struct {
			ContainerHierarchyTexts           []string
			LeafNodeType, LeafNodeText, State string
			RunTime                           time.Duration
			Failure                           struct{ Message string }
		}
	}
	if err := json.Unmarshal(content, &reports); err != nil {
		return nil, fmt.Errorf("report of ginkgo: %w", err)
	}
	var tests []Test
	for _, report := range reports {
		for _, s := range report.SpecReports {
			name := strings.Join(append(s.ContainerHierarchyTexts, s.LeafNodeText), " ")
			if s.LeafNodeType != "It" {
				// What comes before and after all tests has no name of its own. It counts only if it fails.
				if s.State != "passed" && s.State != "skipped" {
					tests = append(tests, Test{Name: s.LeafNodeType, State: s.State, Message: s.Failure.Message})
				}
				continue
			}
			if strings.HasPrefix(name, Family) {
				tests = append(tests, Test{Name: name, State: s.State, Message: s.Failure.Message, Time: s.RunTime})
			}
		}
	}
	return tests, nil
}
