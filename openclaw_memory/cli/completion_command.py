"""Define the command that prints what makes a shell complete the others.

The scripts are ours, and click answers them. With those of click, bash completes no name where folders are completed
too, bash and fish complete no value after `--option=`, zsh puts that in the place of the option, and fish cuts a
description at its first comma.
"""

from __future__ import annotations

import click

from openclaw_memory.cli.output import say_json

_BASH = r"""_openclaw_memory_completion() {
    local IFS=$'\n' words=() word line names=() folders=
    for word in "${COMP_WORDS[@]:0:COMP_CWORD}"; do  # bash takes --option=value for three words
        [[ $word == = ]] || words+=("$word")
    done
    words+=("${COMP_WORDS[COMP_CWORD]}")
    for line in $(env COMP_WORDS="${words[*]}" COMP_CWORD=$((${#words[@]} - 1)) \
            _OPENCLAW_MEMORY_COMPLETE=bash_complete "$1"); do
        case $line in
            plain,*) names+=("${line#*,}") ;;
            dir,*) folders=yes; compopt -o plusdirs -o filenames ;;
            file,*) compopt -o default ;;
        esac
    done
    [[ $folders || ! ${names[*]} ]] || names=($(printf '%q\n' "${names[@]}"))  # those of files are quoted by bash
    COMPREPLY=("${names[@]}")
}
complete -o nosort -F _openclaw_memory_completion openclaw-memory
"""
_ZSH = r"""#compdef openclaw-memory
_openclaw_memory_completion() {
    local -a response names described
    local kind name about
    response=("${(@f)$(env COMP_WORDS="${words[*]}" COMP_CWORD=$((CURRENT-1)) \
        _OPENCLAW_MEMORY_COMPLETE=zsh_complete openclaw-memory)}")
    [[ $PREFIX == --*=* ]] && compset -P 1 '*='
    for kind name about in $response; do
        case $kind in
            plain) if [[ $about == _ ]]; then names+=("$name"); else described+=("$name:$about"); fi ;;
            dir) _path_files -/ ;;
            file) _path_files -f ;;
        esac
    done
    (( $#described )) && _describe -V unsorted described
    (( $#names )) && compadd -V unsorted -a names
}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
    _openclaw_memory_completion "$@"
else
    compdef _openclaw_memory_completion openclaw-memory
fi
"""
_FISH = r"""function _openclaw_memory_completion
    set -l option (string match --regex -- '^--[^=]+=' (commandline -ct))
    for line in (env COMP_WORDS=(commandline -cp) COMP_CWORD=(commandline -ct) \
            _OPENCLAW_MEMORY_COMPLETE=fish_complete openclaw-memory)
        set -l found (string split --max 1 , -- $line)
        switch $found[1]
            case dir
                __fish_complete_directories $found[2]
            case file
                __fish_complete_path $found[2]
            case plain
                echo $found[2]
        end
    end | string replace --regex -- '^' "$option"
end
complete --no-files --command openclaw-memory --arguments "(_openclaw_memory_completion)"
"""
SCRIPTS = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}
_PLACES = {
    "bash": 'eval "$(openclaw-memory completion bash)"  # in ~/.bashrc',
    "zsh": 'eval "$(openclaw-memory completion zsh)"  # in ~/.zshrc, after compinit',
    "fish": "openclaw-memory completion fish | source  # in ~/.config/fish/config.fish",
}


@click.command()
@click.argument("shell", type=click.Choice(list(SCRIPTS)))
@click.option("--json", "as_json", is_flag=True, help="Answer in JSON.")
def completion(shell: str, as_json: bool) -> int:
    """Print what has a shell complete commands and options.

    SHELL is bash, zsh or fish; bash must be 4.4 or newer. Put this line into your settings: eval "$(openclaw-memory
    completion bash)", the same for zsh, and for fish: openclaw-memory completion fish | source.

    Example: openclaw-memory completion zsh
    """
    if as_json:
        say_json({"shell": shell, "script": SCRIPTS[shell], "place": _PLACES[shell]})
    else:
        click.echo(SCRIPTS[shell], nl=False)
    return 0
