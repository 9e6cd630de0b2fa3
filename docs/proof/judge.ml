(* Reads traces from standard input, and writes the verdict of the judge that Coq extracts from Judge.v on each.

   A trace is one line for each step, between "batch LIMIT CALLS" and "left WANTED", "left -" or "stopped".  A claim is
   its mode (r or w), a star if it has its subtree, a colon and the numbers of its path: "w*:0.2".  A verdict is one line:
   "accepted", or the theorem that the trace breaks. *)

open Judged

let rec nat n = if n = 0 then O else S (nat (n - 1))
let number word = nat (int_of_string word)

let claim word =
  match String.split_on_char ':' word with
  | [ mode; path ] ->
      let names = if path = "" then [] else String.split_on_char '.' path in
      {
        resource = List.map number names;
        how = (match mode.[0] with 'r' -> READ | 'w' -> WRITE | _ -> failwith word);
        subtree = String.length mode = 2 && mode.[1] = '*';
      }
  | _ -> failwith word

let event line =
  match String.split_on_char ' ' line with
  | "awaits" :: call :: lane :: claims -> Awaits (number call, number lane, List.map claim claims)
  | "takes" :: call :: lane :: claims -> Takes (number call, number lane, List.map claim claims)
  | [ "starts"; call ] -> Starts (number call)
  | [ "pauses"; call ] -> Pauses (number call)
  | [ "ends"; call ] -> Ends (number call)
  | [ "settles"; call; modifiers ] -> Settles (number call, number modifiers)
  | [ "applies"; lane; call; position ] -> Applies (number lane, number call, number position)
  | [ "merges"; lane ] -> Merges (number lane)
  | [ "hands"; call ] -> Hands (number call)
  | _ -> failwith line

let name = function
  | Every_run_is_serial -> "every_run_is_serial"
  | Batch_is_serial -> "batch_is_serial"
  | Merge_is_in_call_order -> "merge_is_in_call_order"
  | Results_are_in_call_order -> "results_are_in_call_order"
  | Results_are_not_taken_back -> "results_are_not_taken_back"
  | Every_result_is_handed_over -> "every_result_is_handed_over"
  | Some_call_can_go_on -> "some_call_can_go_on"
  | Every_run_ends -> "every_run_ends"

(* The steps up to the line that says how the trace ends. *)
let rec steps before =
  let line = input_line stdin in
  match String.split_on_char ' ' line with
  | [ "stopped" ] -> (List.rev before, Stopped)
  | [ "left"; "-" ] -> (List.rev before, Was_left None)
  | [ "left"; wanted ] -> (List.rev before, Was_left (Some (number wanted)))
  | _ -> steps (event line :: before)

let () =
  try
    while true do
      match String.split_on_char ' ' (input_line stdin) with
      | [ "batch"; limit; calls ] ->
          let events, last = steps [] in
          print_endline
            (match judge (number limit) (number calls) events last with
            | Fine () -> "accepted"
            | Refused why -> name why)
      | words -> failwith (String.concat " " words)
    done
  with End_of_file -> ()
