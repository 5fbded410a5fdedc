package cloud

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/fsnotify/fsnotify"
)

// Watch sends on the channel it gives whenever something happened in a directory of these files, until ctx ends. Directories and
// not files: kubelet puts new content of a mounted Secret into its place by renaming the directory's link ..data, and editors
// rename files. A directory that is not there is left out, and named by the error; the rest is watched all the same. What happens
// inside a directory that came later is not seen: whoever must not miss it looks from time to time too.
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
	happened := make(chan struct{}, 1)
	go func() {
		defer watcher.Close()
		for {
			select {
			case <-ctx.Done():
				return
			case event := <-watcher.Events:
				if event.Op == fsnotify.Chmod {
					continue
				}
			case <-watcher.Errors: // events were lost: something happened
			}
			select {
			case happened <- struct{}{}:
			default: // told already
			}
		}
	}()
	return happened, missing
}

// watchedDirectories are those of the files and, where a file is a link, those of what it leads to.
func watchedDirectories(files []string) []string {
	var dirs []string
	for _, path := range files {
		for range 8 { // a circle of links ends here
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
