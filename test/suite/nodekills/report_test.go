package nodekills

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"
)

// outcome is the outcome of one kill.
type outcome struct {
	kind, rpc string
	call      call
	when      string
	retries   int
	lost      bool
	tool      bool // killed while a tool worked on the disk
}

// outcomes are those of this run, in its order.
var outcomes []outcome

func report(o outcome) { outcomes = append(outcomes, o) }

func (o outcome) result() string {
	if o.lost {
		return "LOST"
	}
	return "converged"
}

// flags are what tells two calls of one name and path apart for a reader.
var flags = regexp.MustCompile(`\b(?:AT_REMOVEDIR|MS_\w+|O_CREAT)\b`)

func (c call) title() string {
	return strings.TrimSpace(c.name + " " + strings.Join(flags.FindAllString(c.args, -1), "|"))
}

// place is the path of a call as a person names it.
func (c call) place() string {
	return strings.NewReplacer("$DIR/kubelet/", "kubelet/", "$DIR/dev/vdb", "the disk", "$DISK", "the disk").Replace(c.path())
}

// group is what a summary has a line for.
type group struct {
	name                 string
	calls                map[string]bool
	kills, lost, retries int
}

// summed adds the outcomes up by a name.
func summed(all []outcome, name func(outcome) string) (groups []*group) {
	for _, o := range all {
		i := slices.IndexFunc(groups, func(g *group) bool { return g.name == name(o) })
		if i < 0 {
			i, groups = len(groups), append(groups, &group{name: name(o), calls: map[string]bool{}})
		}
		g := groups[i]
		g.calls[o.kind+o.rpc+o.call.String()] = true
		g.kills++
		g.retries = max(g.retries, o.retries)
		if o.lost {
			g.lost++
		}
	}
	return groups
}

// printReport prints the outcome of each kill and a summary.
func printReport(w io.Writer) {
	if len(outcomes) == 0 {
		return
	}
	calls := slices.DeleteFunc(slices.Clone(outcomes), func(o outcome) bool { return o.tool })
	tools := slices.DeleteFunc(slices.Clone(outcomes), func(o outcome) bool { return !o.tool })
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "volume\tRPC\tby\tsystem call\tpath\tkilled\toutcome\tretries")
	for _, o := range calls {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%d\n", o.kind, o.rpc, o.call.by, o.call.title(), o.call.place(), o.when, o.result(), o.retries)
	}
	_ = table.Flush() // the reader may have closed stdout
	printSums(w, "RPC", "system calls", summed(calls, func(o outcome) string { return o.rpc }))
	printSums(w, "tool at work, what is killed", "kinds of calls", summed(tools, func(o outcome) string { return o.call.by + ", " + o.when }))
	lost := 0
	for _, o := range outcomes {
		if o.lost {
			lost++
		}
	}
	if !mayGrowExt4() {
		fmt.Fprintln(w, "\nnot run: the growth of ext4, for which the kernel wants CAP_SYS_RESOURCE, and this process lacks it")
	}
	fmt.Fprintf(w, "\n%d kills at %d system calls and %d while a tool worked; %d lost; a call may take %d retries, and one more while a tool stands still\n",
		len(outcomes), len(calls), len(tools), lost, 1+mostRetries)
}

func printSums(w io.Writer, name, calls string, groups []*group) {
	fmt.Fprintln(w)
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "%s\t%s\tkills\tlost\tmost retries\n", name, calls)
	for _, g := range groups {
		fmt.Fprintf(table, "%s\t%d\t%d\t%d\t%d\n", g.name, len(g.calls), g.kills, g.lost, g.retries)
	}
	_ = table.Flush()
}
