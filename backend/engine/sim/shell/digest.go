package shell

import (
	"crypto/md5" //nolint:gosec // md5sum is what people call it
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"hash"
	"io"
)

func digest(c *command) int {
	make := func() hash.Hash { return sha256.New() }
	if c.name == "md5sum" {
		make = func() hash.Hash { return md5.New() } //nolint:gosec // md5sum is what people call it
	}
	return c.each(c.args, func(name string, r io.Reader) error {
		sum := make()
		if _, err := io.Copy(sum, r); err != nil {
			return err
		}
		return c.println(fmt.Sprintf("%x  %s", sum.Sum(nil), name))
	})
}

func encode(c *command) int {
	f, operands, err := c.parse("dw:", map[string]byte{"decode": 'd'})
	if err != nil {
		return c.complain(err)
	}
	return c.each(operands, func(_ string, r io.Reader) error {
		if f.has("d") {
			_, err := io.Copy(c.out, base64.NewDecoder(base64.StdEncoding, r))
			return err
		}
		data, err := slurp(r)
		if err != nil {
			return err
		}
		text := base64.StdEncoding.EncodeToString(data)
		for len(text) > 76 && f['w'] != "0" {
			if err := c.println(text[:76]); err != nil {
				return err
			}
			text = text[76:]
		}
		return c.println(text)
	})
}
