#!/usr/bin/env bash
# Puts the release VERSION of tq on the PATH of the steps that follow.
set -euo pipefail
releases="${TQ_RELEASES:-https://github.com/tq-traces/tq/releases/download}"
case "$RUNNER_OS-$RUNNER_ARCH" in
Linux-X64) target=x86_64-unknown-linux-gnu ;;
Linux-ARM64) target=aarch64-unknown-linux-gnu ;;
macOS-X64) target=x86_64-apple-darwin ;;
macOS-ARM64) target=aarch64-apple-darwin ;;
Windows-X64) target=x86_64-pc-windows-msvc ;;
*)
  echo "::error::no release of tq is for $RUNNER_OS on $RUNNER_ARCH: cargo install --locked --git https://github.com/tq-traces/tq tq-cli"
  exit 2
  ;;
esac
name="tq-$VERSION-$target"
archive="$name.tar.gz"
case "$target" in *windows*) archive="$name.zip" ;; esac
folder="$RUNNER_TEMP/$name-download"
mkdir -p "$folder"
cd "$folder"
for file in "$archive" "$archive.sha256"; do
  curl --fail --silent --show-error --location --retry 3 --output "$file" "$releases/v$VERSION/$file"
done
if command -v sha256sum >/dev/null; then sha256sum --check "$archive.sha256"; else shasum -a 256 --check "$archive.sha256"; fi
case "$archive" in
*.zip) unzip -q "$archive" ;;
*) tar -xzf "$archive" ;;
esac
echo "$folder/$name" >>"$GITHUB_PATH"
