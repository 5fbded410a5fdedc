package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
	"github.com/cinder-csi/cinder-csi/internal/printable"
)

// Changes writes one line for each change, with the objects it concerns and what generate wants before it applies the change.
func Changes(out io.Writer, c v1alpha1.Changes) error {
	for _, change := range c.Changes {
		if _, err := fmt.Fprintln(out, ChangeLine(change)); err != nil {
			return err
		}
	}
	for _, fact := range c.Kept {
		if _, err := fmt.Fprintln(out, "kept: "+printable.Line(fact)); err != nil {
			return err
		}
	}
	return nil
}

// mostObjects is how many objects one line names. The JSON form names them all.
const mostObjects = 4

// ChangeLine is one change as one line, with the flags that allow it if generate refuses it.
func ChangeLine(c v1alpha1.Change) string {
	line := Accepted(c)
	if flags := flagsOf(c); flags != "" {
		line += " (generate refuses this without " + flags + ")"
	}
	return line
}

// Why is why generate refuses a change, and the flags that allow it.
func Why(c v1alpha1.Change) string { return printable.Line(c.Refused) + " (" + flagsOf(c) + ")" }

// Refusal is one change that generate refuses: what changes, why it is refused, and the flags that allow it. It has several lines.
func Refusal(c v1alpha1.Change) string {
	return Accepted(c) + "\n  why it is refused: " + printable.Line(c.Refused) + "\n  to allow it: " + flagsOf(c)
}

// Accepted is one change that nothing stands against any more: what changes, and in which objects.
func Accepted(c v1alpha1.Change) string {
	line := printable.Line(c.Message)
	if missing := unnamed(c); len(missing) > 0 {
		if n := len(missing); n > mostObjects {
			missing = append(missing[:mostObjects-1], fmt.Sprintf("and %d more", n-mostObjects+1))
		}
		line += " [" + printable.Line(strings.Join(missing, ", ")) + "]"
	}
	return line
}

// unnamed are the objects of a change that its message does not name already.
func unnamed(c v1alpha1.Change) []string {
	return slices.DeleteFunc(slices.Clone(c.Objects), func(object string) bool {
		kind, name, _ := strings.Cut(object, "/")
		return strings.Contains(c.Message, kind+" "+name) || strings.Contains(c.Message, "replaced by "+name)
	})
}

func flagsOf(c v1alpha1.Change) string {
	var flags []string
	if c.Accept != "" {
		flags = append(flags, "--accept "+c.Accept)
	}
	if c.Force {
		flags = append(flags, "--force")
	}
	return strings.Join(flags, " or ")
}

// longestComment is what a comment of GitHub, with 65,536 characters, has room for besides the last line.
const longestComment = 65_000

// ChangesMarkdown writes a comment for a pull request: the verdict as heading, then the changes.
func ChangesMarkdown(out io.Writer, c v1alpha1.Changes) error {
	var b strings.Builder
	fmt.Fprintf(&b, "### %s\n", verdict(c))
	var items []string
	for _, change := range c.Changes {
		items = append(items, ChangeLine(change))
	}
	for _, fact := range c.Kept {
		items = append(items, "kept: "+fact)
	}
	if len(items) > 0 {
		b.WriteString("\n")
	}
	missing := 0
	for _, item := range items {
		class, rest, _ := strings.Cut(item, ": ")
		if line := fmt.Sprintf("- **%s**: %s\n", class, printable.Markdown(rest)); b.Len()+len(line) <= longestComment {
			b.WriteString(line)
		} else {
			missing++
		}
	}
	if missing > 0 {
		fmt.Fprintf(&b, "- %d more, for which a comment has no room: `-o text` prints them\n", missing)
	}
	_, err := io.WriteString(out, b.String())
	return err
}

func verdict(c v1alpha1.Changes) string {
	if c.UpToDate {
		return "The cinder-csi bundle is up to date"
	}
	n := "1 change"
	if len(c.Changes) != 1 {
		n = fmt.Sprintf("%d changes", len(c.Changes))
	}
	var flags []string
	if len(c.Accept) > 0 {
		flags = append(flags, "`--accept "+strings.Join(c.Accept, ",")+"`")
	}
	if c.Force {
		flags = append(flags, "`--force`")
	}
	if flags == nil {
		return "The cinder-csi bundle is out of date: " + n
	}
	return fmt.Sprintf("The cinder-csi bundle is out of date: %s, and `generate` refuses without %s", n, strings.Join(flags, " and "))
}
