// Command pictures writes the pictures of the pages. It runs at the top of the repository.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/cinder-csi/cinder-csi/tools/pictures"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "pictures:", err)
		os.Exit(1)
	}
}

func run() error {
	drawn, err := pictures.Draw(os.DirFS("."))
	if err != nil {
		return err
	}
	for name, svg := range drawn {
		if err := os.WriteFile(filepath.Join(pictures.Dir, name), []byte(svg), 0o644); err != nil {
			return err
		}
	}
	return nil
}
