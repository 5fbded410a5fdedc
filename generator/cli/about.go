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
		Use:       "schema [" + strings.Join(v1alpha1.Kinds, "|") + "]",
		Short:     "Print a document's JSON schema; the configuration's unless another is named",
		Args:      cobra.MaximumNArgs(1),
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
			return print(w, asJSON, schema, nil)
		},
	}
}

func newVersionCommand(w *World) *cobra.Command {
	var output string
	c := &cobra.Command{
		Use:   "version",
		Short: "Print the generator's version",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if err := checkOutput(output); err != nil {
				return err
			}
			about := struct {
				Version    string `json:"version"`
				APIVersion string `json:"apiVersion"`
				Go         string `json:"go"`
			}{w.Version, v1alpha1.APIVersion, runtime.Version()}
			return print(w, output, about, func(out io.Writer) error {
				_, err := fmt.Fprintf(out, "cinder-csi-generator %s (%s, %s)\n", about.Version, about.APIVersion, about.Go)
				return err
			})
		},
	}
	outputFlag(c, &output)
	return c
}
