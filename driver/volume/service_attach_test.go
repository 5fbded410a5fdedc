package volume

func attaching(c *fakeCloud) *AttachService { return NewAttachService(c, c, AttachOptions{}) }
