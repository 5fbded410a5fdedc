package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/cinder-csi/cinder-csi/driver/contract"
)

// didYouMean ends a message about a word with the nearest one that would be right; empty where none is near.
func didYouMean(word string, right []string) string {
	if near, found := contract.Nearest(word, right); found {
		return "; did you mean " + near + "?"
	}
	return ""
}

// flagError says which flag was probably meant. A flag of a command is unknown where the command itself is misspelt.
func flagError(c *cobra.Command, err error) error {
	hint := fmt.Sprintf("\nSee '%s --help'.", c.CommandPath())
	name, unknown := strings.CutPrefix(err.Error(), "unknown flag: --")
	if !unknown {
		if strings.Contains(err.Error(), "missing unit in duration") {
			return usage("%w; write it with a unit, such as 30s or 2m%s", err, hint)
		}
		return usage("%w%s", err, hint)
	}
	if words := c.Flags().Args(); c.Parent() == nil && len(words) > 0 {
		if err := noCommand(c, words[:1]); err != nil {
			return usage("%w%s", err, hint)
		}
	}
	var flags []string
	c.Flags().VisitAll(func(f *pflag.Flag) { flags = append(flags, "--"+f.Name) })
	return usage("%w%s%s", err, didYouMean("--"+name, flags), hint)
}
