package bundle

import "errors"

func (p *plane) helm(Tree) error { return errors.New("not yet") }
