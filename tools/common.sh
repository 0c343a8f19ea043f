# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
# What the scripts in tools/ share. They source it first thing; the repository's root becomes the
# working directory.

start_dir=$PWD
cd "$(dirname "${BASH_SOURCE[0]}")/.."
root=$PWD
: "$start_dir" "$root"

say() { printf '== %s\n' "$*"; }
die() {
	printf 'error: %s\n' "$*" >&2
	exit 1
}

# Run as root in somebody's clone: what was built is to be theirs, or they could not build again.
give_back_builds() {
	local owner dir
	((EUID == 0)) || return 0
	owner=$(stat -c %u:%g .)
	[[ $owner != 0:* ]] || return 0
	for dir in build build-*; do
		[[ ! -d $dir || -L $dir ]] || chown -Rh "$owner" -- "$dir"
	done
}
scratch= # a temporary directory, removed at the end
on_exit() {
	[[ -z $scratch ]] || rm -rf -- "$scratch"
	give_back_builds
}
trap on_exit EXIT

# Debian's mirror, as apt is told; fails where it has none.
debian_mirror() {
	local all
	# shellcheck disable=SC2016 # apt fills them in
	all=$(apt-get indextargets --format '$(LABEL) $(COMPONENT) $(REPO_URI)' 'Created-By: Packages' 2>/dev/null |
		sed -n 's/^Debian main //p')
	[[ $all ]] && printf '%s\n' "${all%%$'\n'*}"
}

# debootstrap does not ask apt.
use_proxy_of_apt() {
	local proxy=
	eval "$(apt-config shell proxy Acquire::http::Proxy)"
	[[ -z $proxy ]] || export http_proxy=${http_proxy:-$proxy}
}

# build_preset NAME DIRECTORY [TARGET...] [-- CMAKE-OPTION...]: configures and builds, quiet unless that
# fails. By ninja where it is installed, which takes two thirds of the time; a directory that make has
# built stays make's.
build_preset() {
	local preset=$1 dir=$2 log targets=()
	! command -v ninja >/dev/null || export CMAKE_GENERATOR=Ninja
	shift 2
	while (($#)) && [[ $1 != -- ]]; do
		targets+=("$1")
		shift
	done
	(($# == 0)) || shift
	if ! mkdir -p "$dir" 2>/dev/null || [[ ! -w $dir ]]; then
		die "$root/$dir cannot be written by $(id -un)"
	fi
	# A copied or moved tree: a build that was configured for another place is of no use.
	if [[ -f $dir/CMakeCache.txt ]] &&
		! grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$root" "$dir/CMakeCache.txt"; then
		rm -rf -- "$dir"
		mkdir "$dir"
	fi
	log=$dir/build.log
	if ! { cmake --preset "$preset" "$@" &&
		cmake --build "$dir" --parallel "$(nproc)" ${targets[0]+--target "${targets[@]}"}; } >"$log" 2>&1; then
		cat "$log" >&2
		die "the $preset build failed; its output is above and in $root/$log"
	fi
}
