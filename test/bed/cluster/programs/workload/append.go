package main

import (
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// pause is the time between two lines of a writer.
const pause = 100 * time.Millisecond

// appendLines appends a line "WRITER NUMBER MILLISECONDS" until SIGTERM, and syncs each: the number counts from 1, the time is since 1970. It ends at
// the first write that fails, so that its container's restarts tell whether the volume was always writable.
func appendLines(file, writer string) error {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	defer f.Close()
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for n := 1; ; n++ {
		if _, err := fmt.Fprintf(f, "%s %d %d\n", writer, n, time.Now().UnixMilli()); err != nil {
			return err
		}
		if err := f.Sync(); err != nil {
			return err
		}
		select {
		case <-signals:
			return nil
		case <-tick.C:
		}
	}
}

func printFile(file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(os.Stdout, f)
	return err
}
