package cloud

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"

	"github.com/fsnotify/fsnotify"

	"github.com/cinder-csi/cinder-csi/internal/panics"
)

// Watch sends on the returned channel when something changes in a directory of these files, until ctx ends. It watches
// directories because kubelet updates a mounted Secret by renaming the link ..data in its directory, and editors rename files. It
// skips a missing directory, names it in the error, and watches the others. It does not see changes in a directory that is
// created later, so a caller also checks from time to time.
func Watch(ctx context.Context, files []string) (<-chan struct{}, error) {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, fmt.Errorf("cannot watch files: %w", err)
	}
	var missing error
	for _, dir := range watchedDirectories(files) {
		if err := watcher.Add(dir); err != nil {
			missing = errors.Join(missing, fmt.Errorf("cannot watch %s: %w", dir, err))
		}
	}
	changed := make(chan struct{}, 1)
	panics.Go(slog.Default(), "the watch of files", func() {
		defer watcher.Close()
		for {
			select {
			case <-ctx.Done():
				return
			case event := <-watcher.Events:
				if event.Op == fsnotify.Chmod {
					continue
				}
			case <-watcher.Errors: // the watcher lost events: assume a change
			}
			select {
			case changed <- struct{}{}:
			default: // the receiver already has a notice
			}
		}
	})
	return changed, missing
}

// watchedDirectories are the directories of the files and, if a file is a link, those of its targets.
func watchedDirectories(files []string) []string {
	var dirs []string
	for _, path := range files {
		for range 8 { // ends a loop of links
			dirs = append(dirs, filepath.Dir(path))
			to, err := os.Readlink(path)
			if err != nil {
				break
			}
			if !filepath.IsAbs(to) {
				to = filepath.Join(filepath.Dir(path), to)
			}
			path = to
		}
	}
	slices.Sort(dirs)
	return slices.Compact(dirs)
}
