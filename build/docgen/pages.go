package main

import (
	"bytes"
	"fmt"
	"strings"

	"slipway/backend/settings"
)

func writeSettings(b *bytes.Buffer) error {
	fmt.Fprint(b, "They stand in `settings.json` in Slipway's folder, with a JSON schema beside it; the Settings "+
		"page and `slipway settings`\nchange them. A variable overrides what the file says. What is marked *start* "+
		"is read when Slipway starts.\n\n| setting | variable | value | default | about |\n|---|---|---|---|---|\n")
	for _, f := range settings.Fields() {
		value := string(f.Kind)
		switch {
		case f.Choices != nil:
			value = strings.Join(f.Choices, ", ")
		case f.Most > 0:
			value = fmt.Sprintf("%s, %v to %v", f.Kind, f.Least, f.Most)
		case f.Example != "":
			value = "such as `" + f.Example + "`"
		}
		about := f.Text
		if f.Restart {
			about += " *start*"
		}
		fmt.Fprintf(b, "| `%s` | `%s` | %s | %s | %s |\n", f.Name, f.Env, value, f.Print(f.Default), cell(about))
	}
	return nil
}

func cell(text string) string {
	return strings.NewReplacer("|", "\\|", "\n", " ", "<", "&lt;").Replace(text)
}
