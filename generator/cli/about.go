package cli

import (
	"fmt"
	"io"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

func newSchemaCommand(w *World) *cobra.Command {
	return &cobra.Command{
		Use:   "schema [" + strings.Join(v1alpha1.Kinds, "|") + "]",
		Short: "Print a document's JSON schema; the configuration's unless another is named",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return fmt.Errorf("schema prints one schema, got %s; run it once for each", strings.Join(args, " "))
			}
			return nil
		},
		ValidArgs: v1alpha1.Kinds,
		RunE: func(_ *cobra.Command, args []string) error {
			kind := v1alpha1.KindDistribution
			if len(args) == 1 {
				kind = args[0]
			}
			if err := oneOf("schema", kind, v1alpha1.Kinds); err != nil {
				return err
			}
			schema, err := v1alpha1.Schema(kind)
			if err != nil {
				return err
			}
			return print(w, asJSON, schema, forPeople{})
		},
	}
}

// version is what the command version and the flag --version print.
type version struct {
	Version    string `json:"version"`
	APIVersion string `json:"apiVersion"`
	Go         string `json:"go"`
}

func (v version) String() string {
	return fmt.Sprintf("cinder-csi-generator %s (%s, %s)", v.Version, v.APIVersion, v.Go)
}

func versionOf(w *World) version { return version{w.Version, v1alpha1.APIVersion, runtime.Version()} }

func newVersionCommand(w *World) *cobra.Command {
	var output string
	c := &cobra.Command{
		Use:   "version",
		Short: "Print the generator's version",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if err := checkOutput(output, withoutPage); err != nil {
				return err
			}
			about := versionOf(w)
			return print(w, output, about, forPeople{table: func(out io.Writer) error {
				_, err := fmt.Fprintln(out, about)
				return err
			}})
		},
	}
	outputFlag(c, &output, withoutPage)
	return c
}
