package cli

import "github.com/spf13/cobra"

// newHelpCommand is cobra's, which prints the help of the program for a word that is no command and calls that a success.
func newHelpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "help [command]",
		Short: "Help about any command",
		Args:  cobra.ArbitraryArgs,
		ValidArgsFunction: func(c *cobra.Command, args []string, _ string) (names []cobra.Completion, _ cobra.ShellCompDirective) {
			at, _, _ := c.Root().Find(args)
			for _, sub := range at.Commands() {
				if sub.IsAvailableCommand() {
					names = append(names, cobra.CompletionWithDesc(sub.Name(), sub.Short))
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(c *cobra.Command, args []string) error {
			at, rest, err := c.Root().Find(args)
			if err != nil {
				return usage("%w", err)
			}
			if err := noCommand(at, rest); err != nil {
				return usage("%w", err)
			}
			at.InitDefaultHelpFlag()
			return at.Help()
		},
	}
}
