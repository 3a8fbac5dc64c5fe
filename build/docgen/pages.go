package main

import (
	"bytes"
	"fmt"
	"strings"

	"slipway/backend/session"
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

func writeErrors(b *bytes.Buffer) error {
	fmt.Fprint(b, "This page lists every code that Slipway reports, its usual cause and what to do. For common\n"+
		"problems see [Troubleshooting](troubleshooting.md). A code has the form `domain_operation_detail`\n"+
		"and names the class of a failure; the message beside it says what happened. A field that is\n"+
		"wrong has a kind, such as `required` or `out-of-range`, instead of a code.\n")
	domain := ""
	for _, class := range session.Errors {
		if head, _, _ := strings.Cut(string(class.Code), "_"); head != domain {
			domain = head
			fmt.Fprintf(b, "\n## %s\n\n| code | HTTP | cause | what to do |\n|---|---|---|---|\n", domain)
		}
		fmt.Fprintf(b, "| `%s` | %d | %s | %s |\n", class.Code, class.Status, cell(class.Cause), cell(class.Remedy))
	}
	fmt.Fprint(b,
		"\n## Reasons to wait, ends of sessions and warnings\n\n| code | meaning | what to do |\n|---|---|---|\n")
	for _, class := range session.Notices {
		fmt.Fprintf(b, "| `%s` | %s | %s |\n", class.Code, cell(class.Cause), cell(class.Remedy))
	}
	return nil
}

func cell(text string) string {
	return strings.NewReplacer("|", "\\|", "\n", " ", "<", "&lt;").Replace(text)
}
