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

func writeErrors(b *bytes.Buffer) error {
	found, err := findErrors(".")
	if err != nil {
		return err
	}
	fmt.Fprint(b, "This page lists every code that Slipway reports, with its message and what to do. For common\n"+
		"problems see [Troubleshooting](troubleshooting.md). A code has the form `domain_operation_detail`;\n"+
		"reasons to wait and warnings have codes, too. Parts that vary are written as …: look for\n"+
		"`agent_pull_unavailable` under `agent_…_unavailable`.\n")
	domain := ""
	for _, row := range rowsOf(found) {
		if head, _, _ := strings.Cut(row.codes[0], "_"); head != domain {
			domain = head
			fmt.Fprintf(b, "\n## %s\n\n| code | says | what to do |\n|---|---|---|\n", domain)
		}
		fmt.Fprintf(b, "| `%s` | %s | %s |\n", strings.Join(row.codes, "`, `"), cell(row.says), cell(row.hint))
	}
	return nil
}

func cell(text string) string {
	return strings.NewReplacer("|", "\\|", "\n", " ", "<", "&lt;").Replace(text)
}
