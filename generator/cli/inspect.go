package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cinder-csi/cinder-csi/generator/report"
	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
	"github.com/cinder-csi/cinder-csi/internal/checkout"
)

func newInspectCommand(w *World, shared *common) *cobra.Command {
	from := source{common: shared}
	var output, save string
	c := &cobra.Command{
		Use:   "inspect",
		Short: "Read what the cloud offers: zones, volume types, limits, versions",
		Long:  "Reads the cloud with GET requests only and prints its inventory; what was denied is said, not guessed. A saved inventory is a source for the other commands.",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkOutput(output, withPage); err != nil {
				return err
			}
			inv, err := from.read(cmd.Context(), w)
			if err != nil {
				return err
			}
			if save == "-" { // instead of the other output, or stdout would hold two documents
				return saveInventory(w, save, inv)
			}
			if save != "" {
				if err := saveInventory(w, save, inv); err != nil {
					return err
				}
			}
			return print(w, output, inv, forPeople{
				table: func(out io.Writer) error { return report.Inventory(out, inv, w.columns()) },
				page:  func(out io.Writer) error { return report.InventoryPage(out, inv, w.Version) },
			})
		},
	}
	from.flags(c)
	outputFlag(c, &output, withPage)
	c.Flags().StringVar(&save, "save", "", "also write the inventory to this file, as YAML; - is stdout, instead of the output")
	return c
}

// saveInventory replaces a regular file as a whole, or not at all, and makes one that is not there. Anything else, such as a device or a fifo, is
// somebody's: it is written into as it is, also through a link. - is stdout.
func saveInventory(w *World, name string, inv v1alpha1.Inventory) error {
	content, err := v1alpha1.YAML(inv)
	if err != nil {
		return err
	}
	if name == "-" {
		_, err := w.data.Write(content)
		return err
	}
	if err := checkout.CheckLinks(name); err != nil {
		return usage("--save %s: %w", name, err)
	}
	mode := fs.FileMode(0o644)
	switch info, err := os.Lstat(name); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return fmt.Errorf("the inventory cannot be saved: %w", err)
	case info.IsDir():
		return usage("--save %s is a directory: name a file", name)
	case info.Mode()&fs.ModeSymlink != 0 && !strings.HasPrefix(name, "/dev/") && !strings.HasPrefix(name, "/proc/") && !leadsToADevice(name):
		return usage("--save %s is a symbolic link, which a checkout may bring along: name the file that is meant", name)
	case !info.Mode().IsRegular():
		return writeInto(name, content)
	default:
		mode = info.Mode().Perm()
	}
	f, err := os.CreateTemp(filepath.Dir(name), ".inventory-*")
	if errors.Is(err, fs.ErrNotExist) {
		return usage("--save %s: the directory %s does not exist", name, filepath.Dir(name))
	}
	if err != nil {
		return fmt.Errorf("the inventory cannot be saved: %w", err)
	}
	defer os.Remove(f.Name()) // gone already when all went well
	_, err = f.Write(content)
	if err = cmp.Or(err, f.Chmod(mode), f.Close()); err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		return fmt.Errorf("the inventory cannot be saved as %s: %w", name, err)
	}
	return nil
}

func leadsToADevice(link string) bool {
	info, err := os.Stat(link)
	return err == nil && !info.Mode().IsRegular() && !info.IsDir()
}

// writeInto writes into what is there, and neither makes nor replaces anything.
func writeInto(name string, content []byte) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return fmt.Errorf("the inventory cannot be saved: %w", err)
	}
	_, err = f.Write(content)
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("the inventory cannot be saved as %s: %w", name, err)
	}
	return nil
}

// The forms that documents are printed in.
const (
	asTable = "table"
	asYAML  = "yaml"
	asJSON  = "json"
	asHTML  = "html"
)

// The forms of a document that has a page for people, and of one that has none.
var (
	withPage    = []string{asTable, asYAML, asJSON, asHTML}
	withoutPage = []string{asTable, asYAML, asJSON}
)

func outputFlag(c *cobra.Command, output *string, forms []string) {
	c.Flags().StringVarP(output, "output", "o", asTable, "the form of the output: "+strings.Join(forms, ", "))
	_ = c.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(forms, cobra.ShellCompDirectiveNoFileComp))
}

func checkOutput(output string, forms []string) error { return oneOf("--output", output, forms) }

// forPeople writes a document in the two forms that people read.
type forPeople struct{ table, page func(io.Writer) error }

// print writes a document to stdout in the requested form.
func print(w *World, output string, document any, people forPeople) error {
	var content []byte
	var err error
	switch output {
	case asYAML:
		content, err = v1alpha1.YAML(document)
	case asJSON:
		content, err = v1alpha1.JSON(document)
	case asHTML:
		return people.page(w.Stdout)
	default:
		return people.table(w.Stdout)
	}
	if err != nil {
		return err
	}
	_, err = w.data.Write(content) // no document holds a raw control character
	return err
}
