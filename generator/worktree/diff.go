package worktree

import "github.com/aymanbagabas/go-udiff"

// Diff is the change as a unified diff, that patch(1) and people read. It is empty where the content stays the same. It does not show what is Unknown.
func (c FileChange) Diff() string {
	from, to := "a/"+c.Path, "b/"+c.Path
	if c.Old == nil {
		from = "/dev/null"
	}
	if c.New == nil {
		to = "/dev/null"
	}
	if c.Unknown {
		return "Files " + from + " and " + to + " differ\n"
	}
	return udiff.Unified(from, to, string(c.Old), string(c.New))
}
